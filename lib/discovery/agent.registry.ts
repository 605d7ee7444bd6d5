import type { AgentCatalog, AgentDefinition, AgentReference, Offer } from '../contracts/agent-definition.js';
import { highestVersion } from './dotted-version.js';

type AgentClass = Exclude<AgentReference, string>;

export interface RegisteredAgent {
  classRef: AgentClass;
  definition: AgentDefinition;
}

/** Keeps what was registered (port AgentCatalog). Filled once in `onModuleInit`, fixed from then on. */
export class AgentRegistry implements AgentCatalog {
  private agents: readonly RegisteredAgent[] = [];
  private definitions: readonly AgentDefinition[] = [];
  private offered: readonly Offer[] = [];

  keep(agents: readonly RegisteredAgent[]): void {
    this.agents = agents;
    this.definitions = Object.freeze(agents.map(({ definition }) => Object.freeze(definition)));
    this.offered = this.definitions.map(({ name, version, hash, definitionChange }) => ({
      agent: name,
      version,
      hash: definitionChange === 'accept' ? null : hash,
    }));
  }

  all(): readonly AgentDefinition[] {
    return this.definitions;
  }

  find(agent: AgentReference, version?: string): AgentDefinition | undefined {
    if (typeof agent === 'string') return this.byName(agent, version);
    const own = this.byClass(agent);
    if (own === undefined || version === undefined || own.version === version) return own;
    return this.byName(own.name, version);
  }

  offers(): readonly Offer[] {
    return this.offered;
  }

  private byName(name: string, version: string | undefined): AgentDefinition | undefined {
    const named = this.definitions.filter((definition) => definition.name === name);
    return version === undefined
      ? highestVersion(named, (definition) => definition.version)
      : named.find((definition) => definition.version === version);
  }

  private byClass(agent: AgentClass): AgentDefinition | undefined {
    const exact = this.agents.find(({ classRef }) => classRef === agent);
    return (exact ?? this.agents.find(({ classRef }) => classRef.prototype instanceof agent))?.definition;
  }
}
