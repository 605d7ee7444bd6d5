import type { AgentDefinition } from '../contracts/agent-definition.js';
import type { UserMessage } from '../contracts/message.js';
import type { JournalEntry } from '../contracts/journal-entry.js';
import type { RunWrites } from '../contracts/ports/run-store.port.js';
import type { Attention, RunStatus } from '../contracts/run-status.js';
import type { RunRecord } from '../contracts/run.js';
import { backoff } from '../contracts/retry-policy.js';
import type { DueAnswer } from '../contracts/ports/run-store.port.js';
import { decideClaim, isClaimable } from './claim-run.js';
import type { EnginePorts } from './engine-ports.js';
import { actionFacts, intentsOf } from './execution/intents.js';
import type { Claimed } from './execution/attempt.js';
import { failureOf } from './failure.js';
import type { JournalFold } from './journal/fold-journal.js';
import { catchUp, readRunState } from './journal/read-whole-journal.js';
import type { RunState } from './journal/run-state.js';
import { nextAction, type NextAction } from './next-action.js';
import { effectsNote } from './session-effects.js';
import { readHistory } from './sessions.js';
import { changeStatus, NOTHING, type Transitions } from './transitions.js';
import { recordedText } from './values/recorded-error.js';
import { thrownMessage } from './values/thrown-value.js';

interface Prepared {
  agent: AgentDefinition;
  state: RunState;
  historyRunId: string | null;
  note: UserMessage | null;
  begun: NextAction | null;
  intents: JournalEntry[];
}

/**
 * Prepares and makes a claim: everything that can fail is done before the run's status changes, so that an unreadable journal or a missing definition costs
 * no attempt. The first step's intents travel with the claim.
 */
export class RunClaimer {
  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly transitions: Transitions,
    private readonly workerId: string,
  ) {}

  /**
   * Null when the run is not ours to execute: lost to another worker, not due, not registered here, or handed to a person.
   * @param seen the status in which it was found to be claimable
   */
  async claim(runId: string, seen: RunStatus): Promise<Claimed | null> {
    const loaded = await this.ports.store.load(runId);
    // Workers that look at the same time find the same runs: whoever comes second need not read the journal and lock the row to see it.
    if (!loaded || loaded.run.status !== seen) return null;
    const agent = this.definitionFor(loaded.run);
    if (!agent) return null;
    const prepared = await this.prepare(loaded.run, agent);
    if (!prepared) return null;
    const answer = await this.transitions.apply(
      runId,
      (locked) =>
        decideClaim(locked, {
          workerId: this.workerId,
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
      const history = await readHistory(store, this.fold, historyRunId);
      const read = await readRunState(store, this.fold, run.id, history.messages);
      if (!read) return null;
      const note = run.attempt === 0 ? await effectsNote(store, this.fold, run, history) : null;
      const action = nextAction(
        read.state,
        actionFacts(agent, run, this.ports.options.maxOperations, NOTHING_IN_FLIGHT),
      );
      const joins = action.do === 'call_model' && run.historyCaptured && !note;
      return {
        agent,
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

  /** What a run of a parallel session, which takes its history with its first claim, will see unless another completes meanwhile. */
  private async latestCompleted({ sessionId }: RunRecord): Promise<string | null> {
    return sessionId === null ? null : ((await this.ports.store.session(sessionId))?.latestCompletedRunId ?? null);
  }

  private async blockCorrupt(runId: string, detail: string): Promise<void> {
    const attention: Attention = { reason: 'journal_corrupt', detail: recordedText(detail) };
    const answer = await this.transitions.apply(runId, (locked): RunWrites => {
      if (!isClaimable(locked)) return NOTHING;
      const entries: JournalEntry[] = [{ type: 'run.attention_needed', at: locked.now, attention }];
      return { run: changeStatus(locked.run, 'call_attention', entries, { attention }) };
    });
    if (answer.outcome === 'done' && answer.decision.run)
      this.ports.log.error('a run has a journal that cannot be read; it needs attention', { runId });
  }

  /** The folded state up to the claim: continued, or read anew when the journal or the history moved before the lock. */
  private async stateAfter(run: RunRecord, claim: readonly JournalEntry[], prepared: Prepared): Promise<RunState> {
    if (run.historyRunId !== prepared.historyRunId) {
      const { messages } = await readHistory(this.ports.store, this.fold, run.historyRunId);
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

export type Claimable = DueAnswer['claimable'][number];

/**
 * Spreads the claims of workers that share a queue. Alone a worker takes the runs in their order. Where others are faster with what it has found, it asks for
 * more, takes any of them, and comes back to the front step by step.
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
   * Ms until the next poll where all was lost to others, who are done with it by then; growing where somebody holds the rows for long. Null where it was not.
   * @param maxDelayMs the interval of polls
   */
  pauseMs(maxDelayMs: number): number | null {
    if (this.lostPolls === 0) return null;
    return backoff({ initialDelayMs: LOST_POLL_MS, maxDelayMs }, this.lostPolls, this.random());
  }
}
