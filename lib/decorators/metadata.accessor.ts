/** Reads what the decorators wrote. Class metadata is inherited by subclasses; method metadata belongs to the function that was decorated. */
import 'reflect-metadata';
import {
  AGENT_METADATA,
  AGENT_TOOL_METADATA,
  DECORATED_METHODS_METADATA,
  OBSERVE_RUNS_METADATA,
  RECOVER_TOOL_METADATA,
  RESOLVE_APPROVALS_METADATA,
  SCREEN_INPUT_METADATA,
} from './agent-runs-metadata.tokens.js';
import type { AgentToolOptions } from './agent-tool.options.js';
import type { AgentOptions } from './agent.options.js';

function read<T>(key: symbol, target: unknown): T | undefined {
  return typeof target === 'function' ? (Reflect.getMetadata(key, target) as T | undefined) : undefined;
}

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
