/** One model call or tool call of a run, as folded from its journal. */
import type { JsonValue } from './json.js';
import type { ToolOutcome } from './message.js';
import type { RecoveryPolicy } from './recovery-policy.js';
import type { Usage } from './usage.js';

export type OperationKind = 'model' | 'tool';

export type OperationStatus =
  'waiting' | 'started' | 'completed' | 'failed' | 'denied' | 'uncertain' | 'cancelled' | 'not_run';

/** What cut an operation whose result is missing. */
export type OperationInterruption = 'crash' | 'timeout' | 'cancel';

export interface Operation {
  /** Run-local, e.g. `r1.m2.t0`: part, model call, tool call of that reply. `<runId>/<key>` is the operation id. */
  key: string;
  kind: OperationKind;
  /** Model name or tool name. */
  name: string;
  status: OperationStatus;
  /** The digest of the arguments or of the request. */
  argumentsDigest?: string;
  interruptedBy?: OperationInterruption;
  recovery?: RecoveryPolicy;
  /** How often it was begun. */
  attempts: number;
  /** Epoch ms; null while it has not begun. */
  startedAt: number | null;
  finishedAt: number | null;
  usage?: Usage;
  outcome?: ToolOutcome;
  /** The result as the model sees it; absent in summaries. */
  output?: JsonValue;
}
