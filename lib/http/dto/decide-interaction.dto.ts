import { ApiOptionalField } from './api-field.decorator.js';

const OBJECT = { type: 'object', additionalProperties: true };

/** Exactly one of `decision`, for an approval, and `action`, for a question. */
export class AgentRunsDecideInteractionDto {
  @ApiOptionalField({ enum: ['approve', 'deny'], description: 'For an approval.' })
  decision?: string;

  @ApiOptionalField({ ...OBJECT, description: 'With `approve`: replace those of the call, as a whole.' })
  arguments?: Record<string, unknown>;

  @ApiOptionalField({ enum: ['accept', 'decline', 'cancel'], description: 'For a question.' })
  action?: string;

  @ApiOptionalField({ ...OBJECT, description: 'With `accept`: one per question id.' })
  answers?: Record<string, unknown>;

  @ApiOptionalField({ type: String, maxLength: 4_000, description: 'The model is told it with a refusal.' })
  note?: string;
}
