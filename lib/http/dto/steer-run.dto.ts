import { ApiField, ApiOptionalField } from './api-field.decorator.js';

export class AgentRunsSteerDto {
  @ApiField({ type: String, description: 'The model gets it as a user message at the next boundary.' })
  message!: string;

  @ApiOptionalField({ type: String, maxLength: 128, description: 'Idempotency key within the run.' })
  requestId?: string;
}

export class AgentRunsSteerReceiptDto {
  @ApiField({ type: String })
  messageId!: string;

  @ApiField({ enum: ['queued'] })
  status!: string;
}
