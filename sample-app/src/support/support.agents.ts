import type { Type } from '@nestjs/common';
import { Agent, type AgentOptions } from 'nestjs-agent-runs';
import { settings } from '../settings/current.settings.js';

const TOOLS = ['lookup_order', 'refund_payment', 'send_email', 'charge_card', 'ship_order', 'add_note'];

const COMMON = {
  model: 'default',
  modelSettings: { temperature: 0 },
  maxTurns: 20,
  modelRetry: { maxAttempts: 3, initialDelay: '200ms', maxDelay: '2s' },
} satisfies Partial<AgentOptions>;

/** From the environment, as text rather than by a function: a change of it is a change of the definition. */
const suffix = settings.instructionsSuffix;

@Agent({
  ...COMMON,
  name: 'support',
  version: '1',
  instructions: `You work at a support desk. Look an order up before you change anything.${suffix}`,
  tools: TOOLS,
})
export class SupportAgentV1 {}

@Agent({
  ...COMMON,
  name: 'support',
  version: '2',
  instructions: `You work at a support desk. Look an order up before you change anything, leave a note about what you did, and close the order when nothing is left to do.${suffix}`,
  tools: [...TOOLS, 'close_order'],
})
export class SupportAgentV2 {}

@Agent({
  ...COMMON,
  name: 'support-stream',
  version: '1',
  instructions: `You work at a support desk and answer while you think. Look an order up before you change anything.${suffix}`,
  tools: TOOLS,
})
export class SupportStreamAgent {}

const ALL: Record<string, Type> = {
  'support@1': SupportAgentV1,
  'support@2': SupportAgentV2,
  'support-stream@1': SupportStreamAgent,
};

/** The agents that this process registers. */
export const SUPPORT_AGENTS = settings.agents.flatMap((name) => ALL[name] ?? []);
