import { ApiField, ApiOptionalField } from './api-field.decorator.js';
import { AgentRunBudgetDto } from './budget.dto.js';

export class TakeoverConfirmationDto {
  @ApiField({ type: String, description: 'Why its owner is known to be gone.' })
  reason!: string;
}

export class ResumeAgentRunDto {
  @ApiOptionalField({ type: () => AgentRunBudgetDto, description: 'Replaces the stored limit.' })
  budget?: AgentRunBudgetDto;

  @ApiOptionalField({ type: Boolean, description: 'Take the run from a live owner; off unless the server allows it.' })
  allowRunningTakeover?: boolean;

  @ApiOptionalField({ type: () => TakeoverConfirmationDto, description: 'Needed for a takeover, or `reason`.' })
  confirmation?: TakeoverConfirmationDto;

  @ApiOptionalField({ type: String })
  reason?: string;
}
