import type { AgentCatalog } from '../contracts/agent-definition.js';
import type { ApprovalResolver, InputGuardrail, RunObserver } from '../contracts/ports/host.port.js';
import type { Clock, Digester, EngineLog, IdSource, RunScope } from '../contracts/ports/system.port.js';
import type { RunStore } from '../contracts/ports/run-store.port.js';

/** Everything the engine is given from outside. Time, ids, chance and the store come in here and nowhere else. */
export interface EnginePorts {
  store: RunStore;
  catalog: AgentCatalog;
  clock: Clock;
  ids: IdSource;
  digester: Digester;
  scope: RunScope;
  log: EngineLog;
  /** Called in order; failures are logged. Filled at boot, read at each event. */
  observers: readonly RunObserver[];
  /** Null = nothing is screened. */
  guardrail: InputGuardrail | null;
  /** Decides approvals in the moment; null = people do. */
  approvalResolver: ApprovalResolver | null;
  options: EngineOptions;
  /** Awaited before a run is accepted, where the application is not up yet; null once it is. */
  beforeStart: (() => Promise<void>) | null;
}

/** The engine's settings, durations in ms. The module layer turns the host's options into these. */
export interface EngineOptions {
  /** False: this process starts, reads and answers, and never claims. */
  worker: boolean;
  /** Part of the worker's id, for people. */
  workerName: string;
  /** How long a worker's lease lasts; renewed every third of it. */
  leaseMs: number;
  /**
   * Polling interval for runs that other processes made claimable; backs off to `pollIdleMs` while there are none.
   */
  pollMs: number;
  pollIdleMs: number;
  /** How often the store is read for the streams of this process; not at all while none waits. */
  streamPollMs: number;
  /** Runs executed at a time in this process. */
  maxConcurrentRuns: number;
  /** How long a shutdown waits for calls in flight before it aborts them. */
  shutdownTimeoutMs: number;
  /** Claims after lost leases without a committed result in between, before a person must decide. */
  maxRecoveries: number;
  /** How long a claimable run may go unoffered by every live worker. */
  unknownVersionAfterMs: number;
  /** Pending and queued runs accepted, over all processes. */
  maxPendingRuns: number;
  /** Operations of one run. */
  maxOperations: number;
  /** Bytes of JSON text of one prompt, result or reply. */
  maxPayloadBytes: number;
  /** Default time in which an interaction must be decided, in ms; null = no limit. */
  approvalExpiresMs: number | null;
  /** Whether a run continues by itself when its last interaction is decided; `manual`: it waits for `resume`. */
  resumeAfterAnswers: 'automatic' | 'manual';
  /** Called once when the store broke a promise and this process's worker stopped for good. */
  onStoreFailure: ((error: Error) => void) | null;
}

export const DEFAULT_ENGINE_OPTIONS: Readonly<EngineOptions> = Object.freeze({
  worker: true,
  workerName: 'worker',
  leaseMs: 60_000,
  pollMs: 1_000,
  pollIdleMs: 5_000,
  streamPollMs: 150,
  maxConcurrentRuns: 10,
  shutdownTimeoutMs: 7_000,
  maxRecoveries: 5,
  unknownVersionAfterMs: 60_000,
  maxPendingRuns: 10_000,
  maxOperations: 10_000,
  maxPayloadBytes: 16 * 1024 * 1024,
  approvalExpiresMs: 86_400_000,
  resumeAfterAnswers: 'automatic',
  onStoreFailure: null,
});

/**
 * The largest payload of a store: it may stand in a commit twice, e.g. a call's arguments as the model gave them and as
 * they are executed.
 */
export function maxPayloadIn(maxCommitBytes = Infinity): number {
  return Math.floor(maxCommitBytes / 2);
}
