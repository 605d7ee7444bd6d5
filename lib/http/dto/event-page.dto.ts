import { ApiField } from './api-field.decorator.js';

export class AgentRunsEventDto {
  @ApiField({ type: Number, description: 'Its sequence within the run: 1, 2, 3 …' })
  id!: number;

  @ApiField({ type: String, example: 'tool.completed' })
  type!: string;

  @ApiField({ type: 'object', additionalProperties: true })
  data!: Record<string, unknown>;
}

export class AgentRunsEventPageDto {
  @ApiField({ type: () => AgentRunsEventDto, isArray: true })
  events!: AgentRunsEventDto[];

  @ApiField({ type: Number, description: 'Give it as `after`.' })
  nextCursor!: number;
}
