import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunsBudgetDto } from './budget.dto.js';

export class AgentRunsTakeoverConfirmationDto {
  @ApiField({ type: String, description: 'Why its owner is known to be gone.' })
  reason!: string;
}

export class AgentRunsResumeDto {
  @ApiOptionalField({ type: () => AgentRunsBudgetDto, description: 'Replaces the stored limit.' })
  budget?: AgentRunsBudgetDto;

  @ApiOptionalField({ type: Boolean, description: 'Take the run from a live owner; off unless the server allows it.' })
  allowRunningTakeover?: boolean;

  @ApiOptionalField({
    type: () => AgentRunsTakeoverConfirmationDto,
    description: 'Needed for a takeover, or `reason`.',
  })
  confirmation?: AgentRunsTakeoverConfirmationDto;

  @ApiOptionalField({ type: String })
  reason?: string;
}
