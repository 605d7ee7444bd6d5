import { ApiField } from './api-field.decorator.js';

export class AgentToolDto {
  @ApiField({ type: String })
  name!: string;

  @ApiField({ type: String })
  version!: string;

  @ApiField({ enum: ['manual', 'inform', 'probe', 'idempotent', 'safe', 'transactional'] })
  recovery!: string;

  @ApiField({ enum: ['none', 'rule'] })
  approval!: string;
}

export class AgentVersionDto {
  @ApiField({ type: String })
  version!: string;

  @ApiField({ type: String })
  hash!: string;

  @ApiField({ type: () => AgentToolDto, isArray: true })
  tools!: AgentToolDto[];
}

export class AgentDto {
  @ApiField({ type: String })
  name!: string;

  @ApiField({ type: () => AgentVersionDto, isArray: true })
  versions!: AgentVersionDto[];
}

export class AgentListDto {
  @ApiField({ type: () => AgentDto, isArray: true })
  agents!: AgentDto[];
}
