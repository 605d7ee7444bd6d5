import { ApiField } from './api-field.decorator.js';

export class AgentRunEventDto {
  @ApiField({ type: Number, description: 'Its sequence within the run: 1, 2, 3 …' })
  id!: number;

  @ApiField({ type: String, example: 'tool.completed' })
  type!: string;

  @ApiField({ type: 'object', additionalProperties: true })
  data!: Record<string, unknown>;
}

export class AgentRunEventPageDto {
  @ApiField({ type: () => AgentRunEventDto, isArray: true })
  events!: AgentRunEventDto[];

  @ApiField({ type: Number, description: 'Give it as `after`.' })
  nextCursor!: number;
}
