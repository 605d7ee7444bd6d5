import type { Clock, Digester } from '../contracts/ports/system.port.js';
import type { ModelClient } from '../contracts/ports/model-client.port.js';
import type { StoreTraits } from '../contracts/ports/run-store.port.js';
import type { ToolDefinition } from '../contracts/agent-definition.js';
import type { AgentLimits } from '../decorators/agent.options.js';
import type { Duration } from '../contracts/duration.js';

/** What all agents and tools have unless they say otherwise. */
export interface AgentDefaults extends AgentLimits {
  /** Per tool execution. Default: no limit. */
  toolTimeout?: Duration;
}

/** What registrations are checked against and completed with. */
export interface RegistrationSettings {
  models: Readonly<Record<string, ModelClient>>;
  defaults: AgentDefaults;
  /** What every agent may name among its tools; no provider may use these names. */
  builtInTools: readonly ToolDefinition[];
  store: StoreTraits;
  leaseMs: number;
  /** Whether tool calls also run the host's global guards, interceptors and filters. */
  globalEnhancers: boolean;
  clock: Clock;
  digester: Digester;
}
