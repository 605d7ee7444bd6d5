import { applyDecorators, Injectable, SetMetadata } from '@nestjs/common';
import { AGENT_METADATA } from './agent-runs-metadata.tokens.js';
import type { AgentOptions } from './agent.options.js';

/**
 * Declares a provider as an agent. Applies `@Injectable()`. The options are checked at boot, together with all others.
 */
export function Agent(options: AgentOptions): ClassDecorator {
  return applyDecorators(Injectable(), SetMetadata(AGENT_METADATA, options));
}
