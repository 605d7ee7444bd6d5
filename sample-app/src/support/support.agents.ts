import type { Type } from '@nestjs/common';
import { Agent, type AgentOptions } from 'nestjs-agent-runs';
import type { Settings } from '../settings/settings.js';

const TOOLS = ['lookup_order', 'refund_payment', 'send_email', 'charge_card', 'ship_order', 'add_note'];

const LIMITS = {
  model: 'default',
  maxTurns: 20,
  modelRetry: { maxAttempts: 3, initialDelay: '200ms', maxDelay: '2s' },
} satisfies Partial<AgentOptions>;

/**
 * The agents of this process. In most applications an agent is a plain class with `@Agent({ … })` in a file of its own; here they are made by a function,
 * because their instructions and their number come from the environment.
 */
export function supportAgents({ agents, instructionsSuffix: suffix }: Settings): Type[] {
  @Agent({
    ...LIMITS,
    name: 'support',
    version: '1',
    instructions: `You work at a support desk. Look an order up before you change anything.${suffix}`,
    tools: TOOLS,
  })
  class SupportAgentV1 {}

  @Agent({
    ...LIMITS,
    name: 'support',
    version: '2',
    instructions: `You work at a support desk. Look an order up before you change anything, leave a note about what you did, and close the order when nothing is left to do.${suffix}`,
    tools: [...TOOLS, 'close_order'],
  })
  class SupportAgentV2 {}

  @Agent({
    ...LIMITS,
    name: 'support-stream',
    version: '1',
    instructions: `You work at a support desk and answer while you think. Look an order up before you change anything.${suffix}`,
    tools: TOOLS,
  })
  class SupportStreamAgent {}

  const all: Record<string, Type> = {
    'support@1': SupportAgentV1,
    'support@2': SupportAgentV2,
    'support-stream@1': SupportStreamAgent,
  };
  return agents.flatMap((name) => all[name] ?? []);
}
