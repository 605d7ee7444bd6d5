import type { AgentDefinition } from '../contracts/agent-definition.js';
import type { UserMessage } from '../contracts/message.js';
import type { JournalEntry } from '../contracts/journal-entry.js';
import type { DueAnswer } from '../contracts/ports/run-store.port.js';
import type { Attention, RunStatus } from '../contracts/run-status.js';
import { CONTRACT_VERSION, type RunRecord } from '../contracts/run.js';
import { backoff } from '../contracts/policies.js';
import { decideClaim, decidePutBack, isClaimable } from './claim-run.js';
import type { EnginePorts } from './engine-ports.js';
import { actionFacts, intentsOf } from './execution/intents.js';
import type { Claimed } from './execution/attempt.js';
import { failureOf } from './failure.js';
import type { JournalFold } from './journal/fold-journal.js';
import { catchUp, readRunState } from './journal/read-whole-journal.js';
import type { RunState } from './journal/run-state.js';
import { nextAction, type NextAction } from './next-action.js';
import type { RunWorker } from './run-worker.js';
import { effectsNote, readHistory } from './sessions.js';
import { callAttention, NOTHING, type Transitions } from './transitions.js';
import { recordedText, thrownMessage } from './values/recorded-error.js';

interface Prepared {
  state: RunState;
  historyRunId: string | null;
  note: UserMessage | null;
  begun: NextAction | null;
  intents: JournalEntry[];
}

export type Claimable = DueAnswer['claimable'][number];

/**
 * Finds due runs and claims them. Everything that can fail is done before the run's status changes, so that an
 * unreadable journal or a missing definition costs no attempt. The first step's intents travel with the claim.
 */
export class RunClaimer {
  readonly spread: ClaimSpread;
  /**
   * Ids being claimed or started here, each with the term of the lease that it is claimed under: not to be claimed twice,
   * and counted as taken slots.
   */
  readonly claiming = new Map<string, number>();
  /**
   * Runs that may be ours without being executed: of a claim whose answer was lost, or (true) of an attempt that ended
   * without its transition.
   */
  private readonly unconfirmedClaims = new Map<string, boolean>();
  /** Expired runs may be there: polls look for them too, until none is left. */
  takeovers = true;
  /**
   * The last poll claimed everything there was. What becomes claimable in this process wakes the worker, what does
   * elsewhere is found by its next poll.
   */
  sawEnd = false;

  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly transitions: Transitions,
    private readonly worker: RunWorker,
  ) {
    this.spread = new ClaimSpread(() => ports.ids.random());
  }

  /** The answer to a claim or start was lost, or an attempt was: the run may be ours. */
  addUnconfirmedClaim(runId: string, hasAttempted = this.unconfirmedClaims.get(runId) ?? false): void {
    this.unconfirmedClaims.set(runId, hasAttempted);
  }

  /** Puts back the runs that are ours and not executed here. */
  async resolveUnconfirmed(): Promise<void> {
    const { workerId } = this.worker;
    const { maxRecoveries } = this.ports.options;
    for (const [runId, hasAttempted] of this.unconfirmedClaims) {
      if (this.worker.holds(runId)) continue;
      const answer = await this.transitions.apply(runId, (locked) =>
        decidePutBack(locked, { workerId, hasAttempted, maxRecoveries }),
      );
      this.unconfirmedClaims.delete(runId);
      if (answer.outcome !== 'done' || !answer.decision.run) continue;
      const { status, nextAttemptAt, updatedAt } = answer.run;
      this.ports.log.warn('a run that is ours was not executed here, and was put back', { runId, status });
      if (nextAttemptAt !== null) this.worker.wakeAfter(nextAttemptAt - updatedAt);
    }
  }

  /** Polls the store. @param held ids of runs whose state is asked for too */
  async findDue(slots: number, held: readonly string[]): Promise<DueAnswer> {
    const { takeovers } = this;
    const answer = await this.ports.store.due({
      offers: this.ports.catalog.offers(),
      contractVersion: CONTRACT_VERSION,
      limit: this.spread.limit(slots),
      takeovers,
      held: [...held],
    });
    // One poll saw everything there is to take over; a full one may not have.
    if (takeovers && slots > 0 && answer.claimable.length < slots) this.takeovers = false;
    return answer;
  }

  /** Claims as many runs as there are slots. @param slots how many there were when the poll was sent */
  async claimDue(found: readonly Claimable[], slots: number): Promise<{ claimed: number; isMore: boolean }> {
    // Slots may have gone to runs that were started here meanwhile, and a shutdown may have begun: it would not wait
    // for what is claimed now.
    const free = found.filter(({ id }) => !this.worker.holds(id));
    const sample = this.spread.sample(free, this.worker.slots());
    const claims = await Promise.allSettled(sample.map((run) => this.claim(run)));
    const failed = claims.find((claim) => claim.status === 'rejected');
    if (failed) throw failed.reason;
    const claimed = claims.filter((claim) => claim.status === 'fulfilled' && claim.value).length;
    this.spread.record(sample.length, claimed);
    this.sawEnd = found.length < slots && claimed === found.length;
    // A poll that claimed nothing does not repeat itself: another transaction holds the rows.
    return { claimed, isMore: claimed > 0 && sample.length === slots };
  }

  /**
   * False when the run is not ours to execute: lost to another worker, not due, not registered here, or handed to a
   * person.
   * @param run with the status in which it was found to be claimable
   */
  async claim({ id: runId, status }: Claimable): Promise<boolean> {
    this.claiming.set(runId, this.worker.lease.term);
    try {
      const claimed = await this.prepareAndClaim(runId, status);
      if (claimed) this.worker.adopt(claimed);
      return claimed !== null;
    } catch (error) {
      this.addUnconfirmedClaim(runId);
      throw error;
    } finally {
      this.release(runId);
    }
  }

  /** It is not being claimed or started here any more. */
  release(runId: string): void {
    this.claiming.delete(runId);
    this.worker.checkIdle();
  }

  private async prepareAndClaim(runId: string, seen: RunStatus): Promise<Claimed | null> {
    const loaded = await this.ports.store.load(runId);
    // Workers that poll at the same time find the same runs: the second one need not read the journal and lock the row
    // to see it.
    if (!loaded || loaded.run.status !== seen) return null;
    const agent = this.definitionFor(loaded.run);
    const prepared = agent && (await this.prepare(loaded.run, agent));
    if (!prepared) return null;
    const answer = await this.transitions.apply(
      runId,
      (locked) =>
        decideClaim(locked, {
          workerId: this.worker.workerId,
          maxRecoveries: this.ports.options.maxRecoveries,
          definitionHash: agent.hash,
          known: prepared.state,
          note: prepared.note,
          intents: prepared.intents,
          totalsAfterIntents: totalsAfter(prepared),
        }),
      { skipLocked: true, session: loaded.run.sessionId !== null && !loaded.run.historyCaptured },
    );
    if (answer.outcome !== 'done') return null;
    const { run, decision } = answer;
    const { result } = decision;
    if (result.outcome !== 'claimed') return null;
    return {
      run,
      agent,
      state: await this.stateAfter(run, decision.run?.entries ?? [], prepared),
      begun: result.withIntents ? prepared.begun : null,
      inboxWaiting: result.inboxWaiting,
    };
  }

  private definitionFor(run: RunRecord): AgentDefinition | null {
    const agent = this.ports.catalog.find(run.agent, run.version);
    if (!agent || (agent.hash !== run.definitionHash && agent.definitionChange === 'block')) return null;
    return agent;
  }

  private async prepare(run: RunRecord, agent: AgentDefinition): Promise<Prepared | null> {
    try {
      const { store } = this.ports;
      const historyRunId = run.historyCaptured ? run.historyRunId : await this.latestCompleted(run);
      const history = await readHistory(store, this.fold, run.sessionId, historyRunId);
      const read = await readRunState(store, this.fold, run.id, history.messages);
      if (!read) return null;
      const note = run.attempt === 0 ? await effectsNote(store, this.fold, run, history) : null;
      const action = nextAction(
        read.state,
        actionFacts(agent, run, this.ports.options.maxOperations, NOTHING_IN_FLIGHT),
      );
      const joins = action.do === 'call_model' && run.historyCaptured && !note;
      return {
        state: read.state,
        historyRunId,
        note,
        begun: joins ? action : null,
        intents: joins ? intentsOf(action, read.state, agent, this.ports) : [],
      };
    } catch (error) {
      if (failureOf(error) !== 'corrupt') throw error;
      await this.blockCorrupt(run.id, thrownMessage(error));
      return null;
    }
  }

  /**
   * What a run of a parallel session, which takes its history with its first claim, will see unless another completes
   * meanwhile.
   */
  private async latestCompleted({ sessionId }: RunRecord): Promise<string | null> {
    return sessionId === null ? null : ((await this.ports.store.session(sessionId))?.latestCompletedRunId ?? null);
  }

  private async blockCorrupt(runId: string, detail: string): Promise<void> {
    const attention: Attention = { reason: 'journal_corrupt', detail: recordedText(detail) };
    await this.transitions.apply(runId, (locked) => (isClaimable(locked) ? callAttention(locked, attention) : NOTHING));
  }

  /**
   * The folded state up to the claim: continued, or read anew when the journal or the history moved before the lock.
   */
  private async stateAfter(run: RunRecord, claim: readonly JournalEntry[], prepared: Prepared): Promise<RunState> {
    if (run.historyRunId !== prepared.historyRunId) {
      const { messages } = await readHistory(this.ports.store, this.fold, run.sessionId, run.historyRunId);
      return ((await readRunState(this.ports.store, this.fold, run.id, messages)) ?? prepared).state;
    }
    const { state } = prepared;
    if (run.sequence - claim.length === state.sequence) for (const entry of claim) this.fold.apply(state, entry);
    else await catchUp(this.ports.store, this.fold, state);
    return state;
  }
}

const NOTHING_IN_FLIGHT: ReadonlySet<string> = new Set();

/** A request of a new operation counts as a turn; one that is sent again does not. */
function totalsAfter({ state, begun }: Prepared): RunState['totals'] {
  const isNew = begun?.do === 'call_model' && state.model?.key !== begun.key;
  return isNew ? { ...state.totals, turn: state.totals.turn + 1 } : state.totals;
}

/** A poll asks for at most so many runs per free slot: as many workers share a queue without trying the same runs. */
const MAX_SPREAD = 32;
/** Ms after the first poll in which others were faster. */
const LOST_POLL_MS = 10;

/**
 * Spreads the claims of workers that share a queue. Alone a worker takes the runs in their order. Where others are
 * faster with what it has found, it asks for more, takes any of them, and comes back to the front step by step.
 */
export class ClaimSpread {
  /** Runs that a poll asks for, per free slot: those in front are wanted by all. */
  private spread = 1;
  /** Polls in a row that found runs and could claim none of them: others are claiming them. */
  private lostPolls = 0;

  constructor(private readonly random: () => number) {}

  /** How many runs a poll asks for. */
  limit(slots: number): number {
    return slots * this.spread;
  }

  /** As many as there are slots: the first ones, or where others are after those, any of them. */
  sample(claimable: readonly Claimable[], slots: number): Claimable[] {
    if (this.spread === 1 || claimable.length <= slots) return claimable.slice(0, slots);
    const drawn = claimable.map((run) => ({ run, order: this.random() })).sort((a, b) => a.order - b.order);
    return drawn.slice(0, slots).map(({ run }) => run);
  }

  /** Wider at once where others were faster, and narrower again step by step. */
  record(tried: number, claimed: number): void {
    if (claimed < tried / 2) this.spread = Math.min(MAX_SPREAD, this.spread * 4);
    else if (claimed === tried) this.spread = Math.max(1, this.spread - 1);
    this.lostPolls = tried > 0 && claimed === 0 ? this.lostPolls + 1 : 0;
  }

  /** There was nothing to try for, or no answer. */
  reset(): void {
    this.lostPolls = 0;
  }

  /**
   * Ms until the next poll where all was lost to others, who are done with it by then; growing where somebody holds the
   * rows for long. Null where it was not.
   * @param maxDelayMs the interval of polls
   */
  pauseMs(maxDelayMs: number): number | null {
    if (this.lostPolls === 0) return null;
    return backoff({ initialDelayMs: LOST_POLL_MS, maxDelayMs }, this.lostPolls, this.random());
  }
}
