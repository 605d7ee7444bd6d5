import type { JsonValue } from './json.js';
import type { ToolOutcome } from './message.js';
import type { RecoveryPolicy } from './policies.js';

/** `model`: one request to the model with its reply. `tool`: one call of a tool. */
export type OperationKind = 'model' | 'tool';

/**
 * How far an operation is. `waiting` for a person, `uncertain` when nobody knows whether it happened, `not_run` when
 * it was never begun and never will be.
 */
export type OperationStatus =
  'waiting' | 'started' | 'completed' | 'failed' | 'denied' | 'uncertain' | 'cancelled' | 'not_run';

/** Why an operation has no result. */
export type OperationInterruption = 'crash' | 'timeout' | 'cancel';

/** One model call or tool call of a run, as folded from its journal. */
export interface Operation {
  /** Run-local, e.g. `r1.m2.t0`: part, model call, tool call of that reply. `<runId>/<key>` is the operation id. */
  key: string;
  /** Model request or tool call. */
  kind: OperationKind;
  /** Model name or tool name. */
  name: string;
  /** How far it is. */
  status: OperationStatus;
  /** The digest of the arguments or of the request. */
  argumentsDigest?: string;
  /** Absent = nothing interrupted it. */
  interruptedBy?: OperationInterruption;
  /** The policy that was stored with the call; absent for a model request. */
  recovery?: RecoveryPolicy;
  /** How often it was begun. */
  attempts: number;
  /** Epoch ms; null while it has not begun. */
  startedAt: number | null;
  /** Epoch ms; null while it has not ended. */
  finishedAt: number | null;
  /** Of a model request, as reported. */
  usage?: Usage;
  /** Of a tool call that has ended. */
  outcome?: ToolOutcome;
  /** The result as the model sees it; absent in summaries. */
  output?: JsonValue;
}

/** Tokens of one model reply. A number the provider did not report is absent, never zero. */
export interface Usage {
  /** What was sent, cached tokens included. */
  inputTokens?: number;
  /** The part of `inputTokens` that was read from a cache. */
  cachedInputTokens?: number;
  /** What was answered, reasoning included. */
  outputTokens?: number;
  /** The part of `outputTokens` spent on reasoning. */
  reasoningTokens?: number;
  /** As reported, else input + output when both are known. */
  totalTokens?: number;
}

/**
 * Sums over the committed replies of a run, failed attempts that reported their usage included. Unknown numbers add
 * nothing and are counted.
 */
export interface UsageTotals {
  /** What was sent, cached tokens included. */
  inputTokens: number;
  /** The part of `inputTokens` that was read from a cache. */
  cachedInputTokens: number;
  /** What was answered, reasoning included. */
  outputTokens: number;
  /** The part of `outputTokens` spent on reasoning. */
  reasoningTokens: number;
  /** Of the replies whose total is known. */
  totalTokens: number;
  /** Replies whose total is unknown. */
  unknownCalls: number;
}

export const NO_USAGE: Readonly<UsageTotals> = Object.freeze({
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
  unknownCalls: 0,
});

const NAMES = ['inputTokens', 'cachedInputTokens', 'outputTokens', 'reasoningTokens', 'totalTokens'] as const;

/**
 * What a model client reported, as it may be stored and summed: numbers that are no count are unknown, and the total is
 * input + output where it is missing.
 */
export function settledUsage(reported: unknown): Usage {
  const given = (typeof reported === 'object' && reported !== null ? reported : {}) as Record<string, unknown>;
  const usage: Usage = {};
  for (const name of NAMES) {
    const count = given[name];
    if (typeof count === 'number' && Number.isFinite(count) && count >= 0) usage[name] = count;
  }
  if (usage.totalTokens === undefined && usage.inputTokens !== undefined && usage.outputTokens !== undefined)
    usage.totalTokens = usage.inputTokens + usage.outputTokens;
  return usage;
}

/** Usage of two requests for the same reply; a number that neither reported stays unknown. */
export function sumUsage(left: Usage | undefined, right: Usage): Usage {
  const sum: Usage = { ...right };
  for (const name of NAMES) {
    const count = left?.[name];
    if (count !== undefined) sum[name] = count + (right[name] ?? 0);
  }
  return sum;
}

/** Totals with one more reply counted in. */
export function addUsage(totals: UsageTotals, usage: Usage): UsageTotals {
  return {
    inputTokens: totals.inputTokens + (usage.inputTokens ?? 0),
    cachedInputTokens: totals.cachedInputTokens + (usage.cachedInputTokens ?? 0),
    outputTokens: totals.outputTokens + (usage.outputTokens ?? 0),
    reasoningTokens: totals.reasoningTokens + (usage.reasoningTokens ?? 0),
    totalTokens: totals.totalTokens + (usage.totalTokens ?? 0),
    unknownCalls: totals.unknownCalls + (usage.totalTokens === undefined ? 1 : 0),
  };
}
