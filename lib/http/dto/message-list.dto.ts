import { ApiField } from './api-field.decorator.js';

export class AgentRunsMessageListDto {
  @ApiField({ type: 'array', items: { type: 'object', additionalProperties: true } })
  messages!: unknown[];
}
