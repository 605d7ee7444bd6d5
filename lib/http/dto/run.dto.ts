import { RUN_PHASES, RUN_STATUSES } from '../../contracts/run-status.js';
import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunsBudgetDto } from './budget.dto.js';
import { AgentRunsActorDto, AgentRunsInteractionDto } from './interaction.dto.js';

const TIME = { type: String, format: 'date-time' };
const OBJECT = { type: 'object', additionalProperties: true };

export class AgentRunsErrorDto {
  @ApiField({ type: String })
  code!: string;

  @ApiField({ type: String })
  message!: string;
}

export class AgentRunsUsageDto {
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

export class AgentRunsAttentionDto {
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
export class AgentRunsRunSummaryDto {
  @ApiField({ type: String })
  id!: string;

  @ApiField({ type: String })
  agent!: string;

  @ApiField({ type: String })
  version!: string;

  @ApiField({ enum: RUN_STATUSES, enumName: 'AgentRunsRunStatus' })
  status!: string;

  @ApiField({ enum: RUN_PHASES, enumName: 'AgentRunsRunPhase' })
  phase!: string;

  @ApiOptionalField({ type: String, isArray: true })
  waitingFor?: string[];

  @ApiOptionalField({ type: () => AgentRunsAttentionDto })
  attention?: AgentRunsAttentionDto;

  @ApiOptionalField({ type: String })
  sessionId?: string;

  @ApiOptionalField({ type: () => AgentRunsActorDto, description: 'Who started it.' })
  actor?: AgentRunsActorDto;

  @ApiField({ type: Number, description: 'Activations so far.' })
  attempt!: number;

  @ApiField({ type: Number, description: 'Sequence of the last event.' })
  sequence!: number;

  @ApiField({ type: Number, description: 'Model requests begun.' })
  turn!: number;

  @ApiField({ type: () => AgentRunsUsageDto })
  usage!: AgentRunsUsageDto;

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

export class AgentRunsLeaseDto {
  @ApiField({ type: String })
  owner!: string;

  @ApiOptionalField(TIME)
  heartbeatAt?: string;

  @ApiOptionalField(TIME)
  expiresAt?: string;
}

export class AgentRunsGenerationDto {
  @ApiField({ enum: RUN_STATUSES, enumName: 'AgentRunsRunStatus' })
  status!: string;

  @ApiOptionalField({ type: 'object', nullable: true })
  output?: unknown;

  @ApiOptionalField({ type: () => AgentRunsErrorDto })
  error?: AgentRunsErrorDto;

  @ApiField({ type: Number })
  turns!: number;

  @ApiField({ type: () => AgentRunsUsageDto })
  usage!: AgentRunsUsageDto;

  @ApiOptionalField(TIME)
  startedAt?: string;

  @ApiOptionalField(TIME)
  finishedAt?: string;
}

export class AgentRunsRunDto extends AgentRunsRunSummaryDto {
  @ApiOptionalField({ type: String })
  requestId?: string;

  @ApiOptionalField({ type: () => AgentRunsBudgetDto })
  budget?: AgentRunsBudgetDto;

  @ApiOptionalField({ type: 'object', nullable: true, description: 'The answer: text, or the parsed value.' })
  output?: unknown;

  @ApiOptionalField({ type: () => AgentRunsErrorDto })
  error?: AgentRunsErrorDto;

  @ApiField({ type: () => AgentRunsInteractionDto, isArray: true, description: 'The open ones.' })
  interactions!: AgentRunsInteractionDto[];

  @ApiField({ type: String })
  definitionHash!: string;

  @ApiField({ type: Number })
  contractVersion!: number;

  @ApiField({ type: Number })
  restarts!: number;

  @ApiField({
    type: () => AgentRunsGenerationDto,
    isArray: true,
    description: 'Earlier generations of a run that was restarted.',
  })
  previousGenerations!: AgentRunsGenerationDto[];

  @ApiField({ type: Number, description: 'Claims after lost leases without a result in between.' })
  recoveries!: number;

  @ApiOptionalField(TIME)
  deadline?: string;

  @ApiOptionalField({ type: () => AgentRunsLeaseDto })
  lease?: AgentRunsLeaseDto;

  @ApiOptionalField({ type: Boolean, description: 'true when an earlier equal request had started this run.' })
  deduplicated?: true;
}
