import type { RunScope, ScopedCall } from '../contracts/ports/system.port.js';
import { InvalidRequestError, TooManyPendingError } from '../errors/request.errors.js';

/**
 * Runs that wait at a time, for each slot: what waits holds memory, and a run that starts a run without end has to end.
 */
const MAX_WAITING_PER_SLOT = 10;

/** The call that waits, and for which run, once that is known. */
interface Wait {
  call: ScopedCall;
  awaited: string | null;
}

/**
 * Runs whose own code waits for another run in this process. They take no slot meanwhile: otherwise as many of them as
 * there are slots would wait for runs that nobody can execute.
 */
export class RunWaits {
  private readonly waits = new Set<Wait>();
  private readonly most: number;

  constructor(
    private readonly scope: RunScope,
    maxConcurrentRuns: number,
  ) {
    this.most = MAX_WAITING_PER_SLOT * maxConcurrentRuns;
  }

  /** How many of these runs wait. */
  count(runIds: Iterable<string>): number {
    if (this.waits.size === 0) return 0;
    const waiting = this.waiting();
    let count = 0;
    for (const runId of runIds) if (waiting.has(runId)) count++;
    return count;
  }

  /**
   * Does work that waits for a run, in place of the call that it is part of, if it is part of one.
   * @param awaited null = not known yet
   * @throws InvalidRequestError when that could never end, TooManyPendingError
   */
  async during<T>(awaited: string | null, work: (call: ScopedCall | null) => Promise<T>): Promise<T> {
    const call = this.scope.current();
    if (!call) return work(null);
    this.refuse(call, awaited);
    const wait: Wait = { call, awaited };
    this.waits.add(wait);
    try {
      return await work(call);
    } finally {
      this.waits.delete(wait);
    }
  }

  private refuse({ runId, isTransactional }: ScopedCall, awaited: string | null): void {
    if (isTransactional)
      throw new InvalidRequestError(
        'A transactional tool cannot wait for a run: its transaction would stay open meanwhile. Give the tool another recovery policy, or start the run without waiting.',
      );
    if (awaited !== null && this.reaches(awaited, runId))
      throw new InvalidRequestError(
        awaited === runId
          ? `Run ${runId} cannot wait for itself: it is not over before this call has returned.`
          : `Run ${runId} cannot wait for run ${awaited}, which waits for it.`,
      );
    const waiting = this.waiting();
    if (waiting.size >= this.most && !waiting.has(runId))
      throw new TooManyPendingError(
        `Run ${runId} cannot wait for a run: ${waiting.size} runs of this process wait for others already, the most for its slots. Raise maxConcurrentRuns, or start fewer runs out of runs.`,
      );
  }

  /** Whether `from` is `to`, or waits for it, over however many runs. */
  private reaches(from: string, to: string): boolean {
    const reached = new Set([from]);
    for (const runId of reached)
      for (const { call, awaited } of this.waits) if (call.runId === runId && awaited !== null) reached.add(awaited);
    return reached.has(to);
  }

  private waiting(): Set<string> {
    return new Set([...this.waits].map(({ call }) => call.runId));
  }
}
