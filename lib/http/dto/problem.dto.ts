import { ApiField, ApiOptionalField } from './api-field.decorator.js';

/** The body of every error of these routes. */
export class AgentRunsProblemDto {
  @ApiField({ type: Number, example: 409 })
  statusCode!: number;

  @ApiField({ type: String, description: 'Stable, for programs.', example: 'SESSION_BUSY' })
  code!: string;

  @ApiField({ type: String, description: 'For people.' })
  message!: string;

  @ApiOptionalField({ type: 'object', additionalProperties: true })
  details?: Record<string, unknown>;
}
