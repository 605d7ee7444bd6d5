import { ApiOptionalField } from './api-field.decorator.js';

/** The body of a verb that needs nothing. */
export class AgentRunsReasonDto {
  @ApiOptionalField({ type: String, description: 'Kept in the journal.' })
  reason?: string;
}
