import { ApiField } from './api-field.decorator.js';

export class AgentRunsToolDto {
  @ApiField({ type: String })
  name!: string;

  @ApiField({ type: String })
  version!: string;

  @ApiField({ enum: ['manual', 'inform', 'probe', 'idempotent', 'safe', 'transactional'] })
  recovery!: string;

  @ApiField({ enum: ['none', 'rule'] })
  approval!: string;
}

export class AgentRunsAgentVersionDto {
  @ApiField({ type: String })
  version!: string;

  @ApiField({ type: String })
  hash!: string;

  @ApiField({ type: () => AgentRunsToolDto, isArray: true })
  tools!: AgentRunsToolDto[];
}

export class AgentRunsAgentDto {
  @ApiField({ type: String })
  name!: string;

  @ApiField({ type: () => AgentRunsAgentVersionDto, isArray: true })
  versions!: AgentRunsAgentVersionDto[];
}

export class AgentRunsAgentListDto {
  @ApiField({ type: () => AgentRunsAgentDto, isArray: true })
  agents!: AgentRunsAgentDto[];
}
