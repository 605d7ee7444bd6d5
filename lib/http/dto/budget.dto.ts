import { ApiField } from './api-field.decorator.js';

export class AgentRunBudgetDto {
  @ApiField({ type: Number, minimum: 1, description: 'Tokens, over the whole run.' })
  maxTotalTokens!: number;
}
