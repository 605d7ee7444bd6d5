/** Metadata keys, the same for every loaded copy of the package (an application may hold its ESM and its CommonJS build at once). */
export const AGENT_METADATA = Symbol.for('nestjs-agent-runs:agent');
export const AGENT_TOOL_METADATA = Symbol.for('nestjs-agent-runs:agent-tool');
export const RECOVER_TOOL_METADATA = Symbol.for('nestjs-agent-runs:recover-tool');
export const SCREEN_INPUT_METADATA = Symbol.for('nestjs-agent-runs:screen-input');
export const RESOLVE_APPROVALS_METADATA = Symbol.for('nestjs-agent-runs:resolve-approvals');
export const OBSERVE_RUNS_METADATA = Symbol.for('nestjs-agent-runs:observe-runs');
/** On a prototype: the names of its methods that were decorated as tools or probes. */
export const DECORATED_METHODS_METADATA = Symbol.for('nestjs-agent-runs:decorated-methods');
