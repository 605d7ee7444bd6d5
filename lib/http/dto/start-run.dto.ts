import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunsBudgetDto } from './budget.dto.js';

const ID = { type: String, maxLength: 128, description: '1 to 128 characters of A-Z a-z 0-9 . _ : -' };

/** The body of a start. Exactly one of `prompt` and `messages`. */
export class AgentRunsStartDto {
  @ApiField({ type: String, example: 'support' })
  agent!: string;

  @ApiOptionalField({ type: String, example: '2', description: 'Default: the highest registered.' })
  version?: string;

  @ApiOptionalField({ type: String })
  prompt?: string;

  @ApiOptionalField({ type: 'array', items: { type: 'object' }, description: 'Ends with a user message.' })
  messages?: unknown[];

  @ApiOptionalField(ID)
  sessionId?: string;

  @ApiOptionalField({ ...ID, description: 'Idempotency key, unique per session, or per agent without one.' })
  requestId?: string;

  @ApiOptionalField({ ...ID, description: 'The id of the new run. Default: made by the server.' })
  runId?: string;

  @ApiOptionalField({ type: Boolean, description: 'Wait in line when the session is busy.' })
  enqueue?: boolean;

  @ApiOptionalField({ type: () => AgentRunsBudgetDto })
  budget?: AgentRunsBudgetDto;

  @ApiOptionalField({
    type: 'object',
    additionalProperties: { oneOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }] },
  })
  metadata?: Record<string, string | number | boolean>;
}
