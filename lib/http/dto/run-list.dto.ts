import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunSummaryDto } from './run.dto.js';

export class AgentRunListDto {
  @ApiField({ type: () => AgentRunSummaryDto, isArray: true })
  runs!: AgentRunSummaryDto[];

  @ApiOptionalField({ type: String, description: 'Give it as `after`; absent on the last page.' })
  nextCursor?: string;
}
