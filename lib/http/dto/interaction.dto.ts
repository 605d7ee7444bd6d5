import { INTERACTION_STATUSES } from '../../contracts/interaction.js';
import { ApiField, ApiOptionalField } from './api-field.decorator.js';

const TIME = { type: String, format: 'date-time' };
const OBJECT = { type: 'object', additionalProperties: true };
const NULLABLE_TEXT = { type: String, nullable: true };

export class AgentRunsActorDto {
  @ApiField({ type: String })
  id!: string;

  @ApiOptionalField({ type: String, isArray: true })
  roles?: string[];
}

export class AgentRunsQuestionDto {
  @ApiField({ type: String, description: 'Its answer has this name.' })
  id!: string;

  @ApiField({ type: String })
  text!: string;

  @ApiOptionalField({ type: String, isArray: true })
  choices?: string[];

  @ApiOptionalField({ type: Boolean, description: 'With choices: whether another text is accepted. Default false.' })
  allowCustom?: boolean;

  @ApiOptionalField({ ...OBJECT, description: 'JSON Schema of the answer.' })
  schema?: Record<string, unknown>;
}

/** An approval or a question of a run. */
export class AgentRunsInteractionDto {
  @ApiField({ type: String })
  id!: string;

  @ApiField({ type: String })
  runId!: string;

  @ApiField({ ...NULLABLE_TEXT })
  sessionId!: string | null;

  @ApiField({ type: String })
  agent!: string;

  @ApiField({ type: String })
  version!: string;

  @ApiField({ type: () => AgentRunsActorDto, nullable: true, description: 'Who started the run.' })
  actor!: AgentRunsActorDto | null;

  @ApiField({ enum: ['approval', 'question'] })
  kind!: string;

  @ApiField({ enum: INTERACTION_STATUSES, enumName: 'AgentRunsInteractionStatus' })
  status!: string;

  @ApiField({ type: String, example: 'r1.m1.t0' })
  operationKey!: string;

  @ApiField({ type: Number, description: '0: whether the call is begun; n: the n-th ask of its method.' })
  ordinal!: number;

  @ApiField({ ...NULLABLE_TEXT })
  callId!: string | null;

  @ApiField({ ...NULLABLE_TEXT })
  tool!: string | null;

  @ApiField({ ...OBJECT, nullable: true, description: 'As they will be executed; null for a question.' })
  arguments!: Record<string, unknown> | null;

  @ApiField({ type: String, description: 'A decision holds for this digest alone.' })
  digest!: string;

  @ApiField({ ...NULLABLE_TEXT })
  reason!: string | null;

  @ApiField({ ...NULLABLE_TEXT })
  risk!: string | null;

  @ApiField({ ...NULLABLE_TEXT, description: 'Only actors with this role may decide.' })
  approverRole!: string | null;

  @ApiField({ type: () => AgentRunsQuestionDto, isArray: true, nullable: true })
  questions!: AgentRunsQuestionDto[] | null;

  @ApiField({ ...OBJECT, nullable: true, description: 'What was decided and by whom; null while it is open.' })
  decision!: Record<string, unknown> | null;

  @ApiField(TIME)
  createdAt!: string;

  @ApiOptionalField({ ...TIME, description: 'Absent: never.' })
  expiresAt?: string;

  @ApiOptionalField(TIME)
  decidedAt?: string;
}

export class AgentRunsInteractionListDto {
  @ApiField({ type: () => AgentRunsInteractionDto, isArray: true })
  interactions!: AgentRunsInteractionDto[];

  @ApiOptionalField({ type: String, description: 'Give it as `after`; absent on the last page.' })
  nextCursor?: string;
}
