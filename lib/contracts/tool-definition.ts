/** A tool as the engine sees it: what the model is told, how it may be recovered, and the port it is called through. */
import type { JsonObject, JsonValue } from './json.js';
import type { RecoveryPolicy } from './recovery-policy.js';
import type { ToolCaller } from './ports/tool-caller.port.js';

export interface ToolDefinition {
  name: string;
  /** Default '1'. */
  version: string;
  description: string;
  /** JSON Schema of the arguments, as given to the model. */
  inputSchema: JsonObject;
  /** JSON Schema of a result given by a person or a probe; null = anything. */
  outputSchema: JsonValue;
  recovery: RecoveryPolicy;
  /** `rule` when a predicate or `true` decides about approval. */
  approval: 'none' | 'rule';
  /** Ms; null = no limit. Of an execution, and of the check of its arguments. */
  timeoutMs: number | null;
  /** Ms; only for `transactional`, where the smaller of the two counts. */
  transactionTimeoutMs: number;
  /** The call is itself a question to people, in the `questions` of its parsed arguments; it has no method. */
  asksUser?: true;
  caller: ToolCaller;
}
