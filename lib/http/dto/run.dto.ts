import { RUN_PHASES, RUN_STATUSES } from '../../contracts/run-status.js';
import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunBudgetDto } from './budget.dto.js';
import { AgentRunActorDto, AgentRunInteractionDto } from './interaction.dto.js';

const TIME = { type: String, format: 'date-time' };
const OBJECT = { type: 'object', additionalProperties: true };

export class AgentRunErrorDto {
  @ApiField({ type: String })
  code!: string;

  @ApiField({ type: String })
  message!: string;
}

export class AgentRunUsageDto {
  @ApiField({ type: Number })
  inputTokens!: number;

  @ApiField({ type: Number })
  cachedInputTokens!: number;

  @ApiField({ type: Number })
  outputTokens!: number;

  @ApiField({ type: Number })
  reasoningTokens!: number;

  @ApiField({ type: Number })
  totalTokens!: number;

  @ApiField({ type: Number, description: 'Replies whose total the provider did not report.' })
  unknownCalls!: number;
}

export class AgentRunAttentionDto {
  @ApiField({ type: String, example: 'uncertain_outcome' })
  reason!: string;

  @ApiOptionalField({ type: String })
  operationKey?: string;

  @ApiOptionalField({ type: String, isArray: true })
  operations?: string[];

  @ApiField({ type: String })
  detail!: string;
}

/** A run in a list: no prompts, no results. */
export class AgentRunSummaryDto {
  @ApiField({ type: String })
  id!: string;

  @ApiField({ type: String })
  agent!: string;

  @ApiField({ type: String })
  version!: string;

  @ApiField({ enum: RUN_STATUSES, enumName: 'AgentRunStatus' })
  status!: string;

  @ApiField({ enum: RUN_PHASES, enumName: 'AgentRunPhase' })
  phase!: string;

  @ApiOptionalField({ type: String, isArray: true })
  waitingFor?: string[];

  @ApiOptionalField({ type: () => AgentRunAttentionDto })
  attention?: AgentRunAttentionDto;

  @ApiOptionalField({ type: String })
  sessionId?: string;

  @ApiOptionalField({ type: () => AgentRunActorDto, description: 'Who started it.' })
  actor?: AgentRunActorDto;

  @ApiField({ type: Number, description: 'Activations so far.' })
  attempt!: number;

  @ApiField({ type: Number, description: 'Sequence of the last event.' })
  sequence!: number;

  @ApiField({ type: Number, description: 'Model requests begun.' })
  turn!: number;

  @ApiField({ type: () => AgentRunUsageDto })
  usage!: AgentRunUsageDto;

  @ApiOptionalField(OBJECT)
  metadata?: Record<string, string | number | boolean>;

  @ApiOptionalField(TIME)
  nextAttemptAt?: string;

  @ApiField(TIME)
  createdAt!: string;

  @ApiField(TIME)
  updatedAt!: string;

  @ApiOptionalField(TIME)
  startedAt?: string;

  @ApiOptionalField(TIME)
  finishedAt?: string;
}

export class AgentRunLeaseDto {
  @ApiField({ type: String })
  owner!: string;

  @ApiOptionalField(TIME)
  heartbeatAt?: string;

  @ApiOptionalField(TIME)
  expiresAt?: string;
}

export class AgentRunPartDto {
  @ApiField({ enum: RUN_STATUSES, enumName: 'AgentRunStatus' })
  status!: string;

  @ApiOptionalField({ type: 'object', nullable: true })
  output?: unknown;

  @ApiOptionalField({ type: () => AgentRunErrorDto })
  error?: AgentRunErrorDto;

  @ApiField({ type: Number })
  turns!: number;

  @ApiField({ type: () => AgentRunUsageDto })
  usage!: AgentRunUsageDto;

  @ApiOptionalField(TIME)
  startedAt?: string;

  @ApiOptionalField(TIME)
  finishedAt?: string;
}

export class AgentRunDto extends AgentRunSummaryDto {
  @ApiOptionalField({ type: String })
  requestId?: string;

  @ApiOptionalField({ type: () => AgentRunBudgetDto })
  budget?: AgentRunBudgetDto;

  @ApiOptionalField({ type: 'object', nullable: true, description: 'The answer: text, or the parsed value.' })
  output?: unknown;

  @ApiOptionalField({ type: () => AgentRunErrorDto })
  error?: AgentRunErrorDto;

  @ApiField({ type: () => AgentRunInteractionDto, isArray: true, description: 'The open ones.' })
  interactions!: AgentRunInteractionDto[];

  @ApiField({ type: String })
  definitionHash!: string;

  @ApiField({ type: Number })
  contractVersion!: number;

  @ApiField({ type: Number })
  restarts!: number;

  @ApiField({ type: () => AgentRunPartDto, isArray: true, description: 'Earlier parts of a run that was restarted.' })
  previous!: AgentRunPartDto[];

  @ApiField({ type: Number, description: 'Claims after lost leases without a result in between.' })
  recoveries!: number;

  @ApiOptionalField(TIME)
  deadline?: string;

  @ApiOptionalField({ type: () => AgentRunLeaseDto })
  lease?: AgentRunLeaseDto;

  @ApiOptionalField({ type: Boolean, description: 'true when an earlier equal request had started this run.' })
  deduplicated?: true;
}
