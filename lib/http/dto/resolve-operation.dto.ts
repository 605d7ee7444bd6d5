import { ApiField, ApiOptionalField } from './api-field.decorator.js';

export class AgentRunsOperationErrorDto {
  @ApiField({ type: String })
  message!: string;
}

/** Exactly one of `output`, `error` and `notHappened`. */
export class AgentRunsResolveOperationDto {
  @ApiField({ type: String, description: 'The run-local key, or the full operation id.', example: 'r1.m1.t0' })
  key!: string;

  @ApiOptionalField({ description: 'What the call returned: any JSON value.', type: 'object', nullable: true })
  output?: unknown;

  @ApiOptionalField({ type: () => AgentRunsOperationErrorDto, description: 'The call failed.' })
  error?: AgentRunsOperationErrorDto;

  @ApiOptionalField({ type: Boolean, description: 'true: it had no effect and is made again under the same id.' })
  notHappened?: true;

  @ApiOptionalField({ type: String })
  note?: string;
}
