import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunsRunSummaryDto } from './run.dto.js';

export class AgentRunsRunListDto {
  @ApiField({ type: () => AgentRunsRunSummaryDto, isArray: true })
  runs!: AgentRunsRunSummaryDto[];

  @ApiOptionalField({ type: String, description: 'Give it as `after`; absent on the last page.' })
  nextCursor?: string;
}
