import { ApiOptionalField } from './api-field.decorator.js';

export class AgentRunsRetryDto {
  @ApiOptionalField({
    type: Number,
    minimum: 1,
    description: "The run's limit of model calls from now on; more than it has made.",
  })
  maxTurns?: number;

  @ApiOptionalField({ type: String, description: 'Kept in the journal.' })
  reason?: string;
}

export class AgentRunsRestartDto extends AgentRunsRetryDto {
  @ApiOptionalField({ type: String, description: 'Default: what the run was given before.' })
  prompt?: string;
}
