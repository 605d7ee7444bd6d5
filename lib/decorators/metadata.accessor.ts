import 'reflect-metadata';
import type { AgentToolOptions } from './agent-tool.options.js';
import type { AgentOptions } from './agent.options.js';

function read<T>(key: symbol, target: unknown): T | undefined {
  return typeof target === 'function' ? (Reflect.getMetadata(key, target) as T | undefined) : undefined;
}

/**
 * Reads what the decorators wrote. Class metadata is inherited by subclasses; method metadata belongs to the function
 * that was decorated.
 */
export const MetadataAccessor = {
  agent: (classRef: unknown): AgentOptions | undefined => read(AGENT_METADATA, classRef),
  tool: (method: unknown): AgentToolOptions | undefined => read(AGENT_TOOL_METADATA, method),
  /** The name given to `@RecoverTool`. */
  probedTool: (method: unknown): string | undefined => read(RECOVER_TOOL_METADATA, method),
  /** Names of the methods of exactly this prototype that were decorated as tools or probes. */
  decoratedMethods: (prototype: object): (string | symbol)[] =>
    (Reflect.getOwnMetadata(DECORATED_METHODS_METADATA, prototype) ?? []) as (string | symbol)[],
  screensInput: (classRef: unknown): boolean => read<boolean>(SCREEN_INPUT_METADATA, classRef) === true,
  resolvesApprovals: (classRef: unknown): boolean => read<boolean>(RESOLVE_APPROVALS_METADATA, classRef) === true,
  observesRuns: (classRef: unknown): boolean => read<boolean>(OBSERVE_RUNS_METADATA, classRef) === true,
};

/** Metadata keys, the same for every loaded copy of the package (an application may hold its ESM and its CommonJS build at once). */
export const AGENT_METADATA = Symbol.for('nestjs-agent-runs:agent');
export const AGENT_TOOL_METADATA = Symbol.for('nestjs-agent-runs:agent-tool');
export const RECOVER_TOOL_METADATA = Symbol.for('nestjs-agent-runs:recover-tool');
export const SCREEN_INPUT_METADATA = Symbol.for('nestjs-agent-runs:screen-input');
export const RESOLVE_APPROVALS_METADATA = Symbol.for('nestjs-agent-runs:resolve-approvals');
export const OBSERVE_RUNS_METADATA = Symbol.for('nestjs-agent-runs:observe-runs');
/** On a prototype: the names of its methods that were decorated as tools or probes. */
export const DECORATED_METHODS_METADATA = Symbol.for('nestjs-agent-runs:decorated-methods');
