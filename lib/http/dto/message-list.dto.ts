import { ApiField } from './api-field.decorator.js';

export class AgentRunMessageListDto {
  @ApiField({ type: 'array', items: { type: 'object', additionalProperties: true } })
  messages!: unknown[];
}
