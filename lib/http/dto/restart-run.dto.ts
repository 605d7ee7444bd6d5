import { ApiOptionalField } from './api-field.decorator.js';

export class RestartAgentRunDto {
  @ApiOptionalField({ type: String, description: 'Default: what the run was given before.' })
  prompt?: string;

  @ApiOptionalField({ type: String, description: 'Kept in the journal.' })
  reason?: string;
}
