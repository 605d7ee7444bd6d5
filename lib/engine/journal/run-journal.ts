import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { Clock, IdSource } from '../../contracts/ports/system.port.js';
import type { AppendRequest, RunStore, ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type { RunTotals } from '../../contracts/run.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { failureOf, storePause, untilAnswered } from '../failure.js';

/**
 * What one step brings: results that must not be lost, and intents that are only worth something while the attempt may
 * act.
 */
export interface StepEntries {
  results: JournalEntry[];
  intents: JournalEntry[];
  totalsAfterResults: RunTotals;
  totalsAfterIntents: RunTotals;
}

type Counted = Pick<RunTotals, 'turn' | 'results'>;

function turnsOf({ totalsAfterIntents, totalsAfterResults }: StepEntries): number {
  return totalsAfterIntents.turn - totalsAfterResults.turn;
}

/** A step that begins nothing. */
export function resultsOnly(results: JournalEntry[], totals: RunTotals): StepEntries {
  return { results, intents: [], totalsAfterResults: totals, totalsAfterIntents: totals };
}

/** Whether the intents landed with the results. */
export type Landed = 'all' | 'results';

export interface JournalHooks {
  /** Entries are durable; the first has this sequence. */
  onLanded(firstSequence: number, entries: readonly JournalEntry[]): void;
  /** Whether the attempt may still begin something. */
  canStartEffects(): boolean;
  /** Whether it has ended in this process. */
  isOver(): boolean;
}

interface Queued extends StepEntries {
  resolve: (landed: Landed) => void;
  reject: (error: unknown) => void;
}

/** A write of another kind, in its place among the appends. */
interface Alone {
  work: () => Promise<void>;
  reject: (error: unknown) => void;
}

/**
 * The one writer of a running attempt's journal. Numbers the entries, keeps one write in flight, and lets later appends
 * coalesce into the next. Kept here: I2 (a promise resolves only when the entries are durable, and they are published
 * only then) and I10: a result in hand is offered again until it lands, the fence refuses it, or the process ends.
 * Intents are not offered once the attempt may no longer act.
 */
export class RunJournal {
  private queue: (Queued | Alone)[] = [];
  private pumping: Promise<void> | null = null;
  /** Appends were too large for one commit together. */
  private isSingly = false;
  /**
   * Counted and not written after all: with intents that were left out, or in a tool's transaction that was refused.
   */
  private readonly dropped: Counted = { turn: 0, results: 0 };

  constructor(
    private readonly ports: { store: RunStore; clock: Clock; ids: IdSource },
    private readonly run: { runId: string; attempt: number },
    private lastSequence: number,
    private readonly hooks: JournalHooks,
  ) {}

  /** @returns tells what totals of now are once it is their turn: less what was counted before and not written */
  totalsInTurn(totals: RunTotals): () => RunTotals {
    const { turn, results } = this.dropped;
    return () => {
      if (turn === this.dropped.turn && results === this.dropped.results) return totals;
      const { dropped } = this;
      return {
        ...totals,
        turn: totals.turn - (dropped.turn - turn),
        results: totals.results - (dropped.results - results),
      };
    };
  }

  /** Sequence of the last durable entry. */
  get sequence(): number {
    return this.lastSequence;
  }

  /** @throws FencedError, BrokenStoreError, SequenceConflictError, PayloadTooLargeError */
  append(step: StepEntries): Promise<Landed> {
    const landed = new Promise<Landed>((resolve, reject) => this.queue.push({ resolve, reject, ...step }));
    this.pumping ??= this.pump();
    return landed;
  }

  /**
   * Another way to write to this journal, in turn with the appends: those given before it have landed, later ones wait
   * for it. Two writes at once would be given the same sequence, and either of them would look like somebody else's.
   * @throws what the work throws, and what a refused append before it was refused with
   */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const done = new Promise<T>((resolve, reject) =>
      this.queue.push({ work: () => work().then(resolve, reject), reject }),
    );
    this.pumping ??= this.pump();
    return done;
  }

  /**
   * Appends inside a tool's transaction and commits it. A commit whose answer is lost is looked up before anything else
   * is written: until then nobody knows which sequence is next.
   * @throws what the store refused it with; nothing was written then
   */
  commitThrough(transaction: ToolTransaction, step: StepEntries): Promise<void> {
    const entries = [...step.results, ...step.intents];
    return this.alone(async () => {
      try {
        await transaction.commit(this.request(entries, step.totalsAfterIntents));
      } catch (error) {
        if (failureOf(error) !== 'unavailable' || !(await this.wasCommitted(transaction, entries))) {
          this.dropped.turn += turnsOf(step);
          this.dropped.results += step.results.length;
          throw error;
        }
      }
      this.landed(entries);
    });
  }

  /** Ends the transaction, so that it cannot commit any more, then asks until the store answers. */
  private async wasCommitted(transaction: ToolTransaction, entries: readonly JournalEntry[]): Promise<boolean> {
    await transaction.rollback().catch(() => undefined);
    const answer = await untilAnswered(
      this.ports,
      () => this.storedAfter(entries),
      () => this.hooks.isOver(),
    );
    return answer?.attempt === this.run.attempt && answer.isStored;
  }

  /** Entries that another transaction of this attempt wrote: settle, suspend, back off. */
  landed(entries: readonly JournalEntry[]): void {
    const first = this.lastSequence + 1;
    this.lastSequence += entries.length;
    if (entries.length > 0) this.hooks.onLanded(first, entries);
  }

  /** The journal was read up to this sequence: an earlier transaction, whose answer was lost, had written it. */
  caughtUp(sequence: number): void {
    this.lastSequence = sequence;
  }

  private async pump(): Promise<void> {
    for (let head = this.queue[0]; head; head = this.queue[0]) {
      if ('work' in head) {
        this.queue.shift();
        await head.work();
        continue;
      }
      const batch = this.takeAppends();
      try {
        const landed = await this.land(batch);
        for (const step of batch) step.resolve(landed);
      } catch (error) {
        if (batch.length > 1 && AgentRunsError.is(error, 'PAYLOAD_TOO_LARGE')) {
          this.isSingly = true;
          this.queue.unshift(...batch);
        } else for (const step of [...batch, ...this.queue.splice(0)]) step.reject(error);
      }
    }
    this.isSingly = false;
    this.pumping = null;
  }

  /** The appends in front, up to a write of another kind. */
  private takeAppends(): Queued[] {
    if (this.isSingly) return this.queue.splice(0, 1) as Queued[];
    const end = this.queue.findIndex((queued) => 'work' in queued);
    return this.queue.splice(0, end < 0 ? this.queue.length : end) as Queued[];
  }

  private async land(batch: readonly Queued[]): Promise<Landed> {
    const last = batch.at(-1) as Queued;
    const all = batch.flatMap((step) => [...step.results, ...step.intents]);
    const results = batch.flatMap((step) => step.results);
    let failures = 0;
    let offerIntents = true;
    for (;;) {
      const entries = offerIntents ? all : results;
      try {
        if (entries.length > 0)
          await this.ports.store.append(
            this.request(entries, offerIntents ? last.totalsAfterIntents : last.totalsAfterResults),
          );
        this.landed(entries);
        if (!offerIntents) this.dropped.turn += turnsOf(last);
        return offerIntents ? 'all' : 'results';
      } catch (error) {
        if (!offerIntents && AgentRunsError.is(error, 'SEQUENCE_CONFLICT')) {
          // The batch with its intents has landed after all; where the store cannot say so now, the results are offered
          // again.
          const stored = await this.isStored(all);
          if (stored === false) throw error;
          if (stored === true) offerIntents = true;
          else await storePause(this.ports, ++failures);
        } else if (failureOf(error) !== 'unavailable') throw error;
        else {
          await storePause(this.ports, ++failures);
          // An append whose answer was lost may have landed with its intents: only a journal that lacks it lets us
          // leave them out.
          if (
            offerIntents &&
            !this.hooks.canStartEffects() &&
            all.length > results.length &&
            (await this.isStored(all)) === false
          )
            offerIntents = false;
        }
      }
    }
  }

  /** Whether the journal already reaches beyond a batch; null when the store does not answer. */
  private async isStored(entries: readonly JournalEntry[]): Promise<boolean | null> {
    return this.storedAfter(entries).then(
      ({ isStored }) => isStored,
      () => null,
    );
  }

  private async storedAfter(entries: readonly JournalEntry[]): Promise<{ isStored: boolean; attempt: number }> {
    const stored = await this.ports.store.load(this.run.runId);
    const { sequence = 0, attempt = 0 } = stored?.run ?? {};
    return { isStored: sequence >= this.lastSequence + entries.length, attempt };
  }

  private request(entries: JournalEntry[], totals: RunTotals): AppendRequest {
    const { runId, attempt } = this.run;
    return { runId, attempt, firstSequence: this.lastSequence + 1, entries, totals, isNext: true };
  }
}
