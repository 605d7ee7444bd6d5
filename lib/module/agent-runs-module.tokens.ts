/** Injection tokens of the module, the same for every loaded copy of the package: so a second `forRoot` is seen whichever copy it came from. */
export const AGENT_RUNS_STRUCTURE = Symbol.for('nestjs-agent-runs:structure');
export const AGENT_RUNS_SETTINGS = Symbol.for('nestjs-agent-runs:settings');
export const AGENT_RUNS_ENGINE = Symbol.for('nestjs-agent-runs:engine');
export const AGENT_RUNS_OBSERVERS = Symbol.for('nestjs-agent-runs:observers');

/** Optional: what a store's own module has to say at boot. */
export const AGENT_RUNS_STORE_CHECK = Symbol.for('nestjs-agent-runs:store-check');

/** @returns problems; empty when all is well */
export type StoreCheck = (facts: { transactionalTools: readonly string[] }) => string[];
