import { ApiField, ApiOptionalField } from './api-field.decorator.js';

export class AgentRunsBudgetDto {
  @ApiField({ type: Number, minimum: 1, description: 'Tokens, over the whole run.' })
  maxTotalTokens!: number;
}

export class AgentRunsBudgetGrantDto {
  @ApiField({ type: Number, description: 'Tokens that were added.' })
  amount!: number;

  @ApiField({ type: String })
  by!: string;

  @ApiOptionalField({ type: String })
  note?: string;

  @ApiField({ type: String, format: 'date-time' })
  at!: string;
}

export class AgentRunsBudgetStatusDto {
  @ApiOptionalField({ type: Number, description: 'Absent without a limit.' })
  maxTotalTokens?: number;

  @ApiField({ type: Number })
  consumed!: number;

  @ApiOptionalField({ type: Number, description: 'Absent without a limit; 0 when it was overshot.' })
  remaining?: number;

  @ApiField({ type: () => AgentRunsBudgetGrantDto, isArray: true })
  grants!: AgentRunsBudgetGrantDto[];
}

export class AgentRunsDecideBudgetDto {
  @ApiField({ enum: ['grant', 'deny'], description: '`deny` ends the run.' })
  decision!: string;

  @ApiOptionalField({ type: Number, minimum: 1, description: 'With `grant`: tokens to add. Default: what is missing.' })
  amount?: number;

  @ApiOptionalField({ type: String, maxLength: 4_000 })
  note?: string;
}
