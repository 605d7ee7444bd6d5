import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunsRunDto } from './run.dto.js';

export class AgentRunsOperationDto {
  @ApiField({ type: String, example: 'r1.m2.t0' })
  key!: string;

  @ApiField({ enum: ['model', 'tool'] })
  kind!: string;

  @ApiField({ type: String })
  name!: string;

  @ApiField({ enum: ['waiting', 'started', 'completed', 'failed', 'denied', 'uncertain', 'cancelled', 'not_run'] })
  status!: string;

  @ApiOptionalField({ type: String })
  argumentsDigest?: string;

  @ApiOptionalField({ enum: ['crash', 'timeout', 'cancel'] })
  interruptedBy?: string;

  @ApiOptionalField({ enum: ['manual', 'inform', 'probe', 'idempotent', 'safe', 'transactional'] })
  recovery?: string;

  @ApiField({ type: Number })
  attempts!: number;

  @ApiOptionalField({ type: String, format: 'date-time' })
  startedAt?: string;

  @ApiOptionalField({ type: String, format: 'date-time' })
  finishedAt?: string;

  @ApiOptionalField({ type: 'object', additionalProperties: true })
  usage?: Record<string, number>;

  @ApiOptionalField({ type: String })
  outcome?: string;
}

export class AgentRunsSnapshotDto {
  @ApiField({ type: () => AgentRunsRunDto })
  run!: AgentRunsRunDto;

  @ApiField({ type: () => AgentRunsOperationDto, isArray: true })
  operations!: AgentRunsOperationDto[];

  @ApiField({ type: Number, description: 'Read events after it.' })
  cursor!: number;
}
