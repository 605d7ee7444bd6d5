import type { JournalEntry } from '../contracts/journal-entry.js';
import type { LifecycleEvent, RunObserver } from '../contracts/ports/host.port.js';
import type { RunWrites } from '../contracts/ports/run-store.port.js';
import type { RunRecord } from '../contracts/run.js';
import type { EnginePorts } from './engine-ports.js';
import { lifecycleFacts } from './run-presenter.js';
import type { RunSignals } from './run-signals.js';
import type { RunStreams } from './run-streams.js';
import { thrownStack } from './values/recorded-error.js';

/**
 * Tells what was committed, after its commit, in order (I2; what a late answer shows comes late). A failing observer is logged and changes nothing;
 * a slow one delays only the observers' own queue of that run.
 */
export class LifecyclePublisher {
  /** The tail of each run's queue of asynchronous observers. */
  private readonly tails = new Map<string, Promise<void>>();

  constructor(
    private readonly ports: Pick<EnginePorts, 'observers' | 'log' | 'scope'>,
    private readonly signals: RunSignals,
    private readonly streams: Pick<RunStreams, 'committed'>,
  ) {}

  committed(
    run: Pick<RunRecord, 'id' | 'agent' | 'version' | 'sessionId' | 'actor'>,
    firstSequence: number,
    entries: readonly JournalEntry[],
  ): void {
    // Waiters wait for a status, and only these entries change one.
    if (entries.some(({ type }) => type.startsWith('run.'))) this.signals.moved(run.id);
    this.streams.committed(run.id, firstSequence + entries.length - 1);
    for (const entry of entries) this.notice(run, entry);
    if (this.ports.observers.length === 0) return;
    entries.forEach((entry, index) => {
      const event: LifecycleEvent = {
        runId: run.id,
        sequence: firstSequence + index,
        type: entry.type,
        at: new Date(entry.at),
        agent: run.agent,
        version: run.version,
        sessionId: run.sessionId,
        actor: run.actor?.id ?? null,
        details: lifecycleFacts(entry),
      };
      this.enqueue(event);
    });
  }

  /** The next run of a session, which a transition of another run made claimable. */
  advanced(next: RunRecord, { nextInSession }: Pick<RunWrites, 'nextInSession'>): void {
    if (nextInSession) this.committed(next, next.sequence + 1, nextInSession.entries);
  }

  /** What an operator wants to know of without an observer. */
  private notice({ id: runId, agent }: Pick<RunRecord, 'id' | 'agent'>, entry: JournalEntry): void {
    const { log } = this.ports;
    switch (entry.type) {
      case 'run.failed':
      case 'run.timed_out':
        return log.error('a run failed', { runId, agent, code: entry.error.code });
      case 'run.blocked':
        return log.warn('a prompt was refused; its run is blocked', { runId, agent, code: entry.error.code });
      case 'run.attention_needed': {
        const { reason, operations } = entry.attention;
        return log.error('a run needs attention', { runId, agent, reason, operation: operations?.join(',') });
      }
      case 'run.resumed': {
        if (entry.cause !== 'recovered') return;
        const { attempt, previousOwner, unownedForMs } = entry;
        return log.warn('a run was taken over; its worker was gone', {
          runId,
          agent,
          attempt,
          previousOwner,
          unownedForMs,
        });
      }
      case 'tool.uncertain':
        return log.warn('the outcome of a call is unknown', {
          runId,
          agent,
          operation: entry.key,
          interruptedBy: entry.interruptedBy,
        });
      default:
    }
  }

  private enqueue(event: LifecycleEvent): void {
    const before = this.tails.get(event.runId);
    const told = before ? before.then(() => this.tell(event)) : this.tell(event);
    if (told === undefined) return;
    const tail: Promise<void> = told.then(() => {
      if (this.tails.get(event.runId) === tail) this.tails.delete(event.runId);
    });
    this.tails.set(event.runId, tail);
  }

  /** Synchronous observers cost no promise. */
  private tell(event: LifecycleEvent): Promise<void> | undefined {
    const pending = this.ports.observers.flatMap((observer) => this.tellOne(observer, event) ?? []);
    return pending.length === 0 ? undefined : Promise.all(pending).then(() => undefined);
  }

  private tellOne(observer: RunObserver, event: LifecycleEvent): Promise<void> | undefined {
    const failed = (error: unknown): void =>
      this.ports.log.warn('an observer failed; the run is not affected', {
        runId: event.runId,
        type: event.type,
        stack: thrownStack(error),
      });
    try {
      // An observer's work is part of no run, also where a run caused the event.
      const answer = this.ports.scope.enter(null, () => observer.onEvent(event));
      // Whatever it returns is waited for, a promise of another kind as well.
      return answer === undefined ? undefined : Promise.resolve(answer).catch(failed);
    } catch (error) {
      failed(error);
      return undefined;
    }
  }
}
