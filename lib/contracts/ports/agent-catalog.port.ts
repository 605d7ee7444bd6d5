/** What this process has registered. Fixed after boot. */
import type { AgentDefinition, Offer } from '../agent-definition.js';

/** An agent by its registered name, or by the class that carries `@Agent`. */
export type AgentReference = string | (abstract new (...args: never[]) => unknown);

export interface AgentCatalog {
  all(): readonly AgentDefinition[];
  /** The definition; without a version the highest one. Undefined when unknown. */
  find(agent: AgentReference, version?: string): AgentDefinition | undefined;
  /** What this process can execute. */
  offers(): readonly Offer[];
}
