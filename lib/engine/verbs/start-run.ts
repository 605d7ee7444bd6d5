import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { CreateResult, CreateSituation } from '../../contracts/ports/run-store.port.js';
import type { StartContext, StartOptions } from '../../contracts/run-requests.js';
import type { RunRecord, SessionMode } from '../../contracts/run.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { AgentNotFoundError } from '../../errors/request.errors.js';
import type { EnginePorts } from '../engine-ports.js';
import { actionFacts, intentsOf } from '../execution/intents.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { emptyState } from '../journal/run-state.js';
import type { LifecyclePublisher } from '../lifecycle-publisher.js';
import { nextAction } from '../next-action.js';
import type { PendingLimit } from '../pending-limit.js';
import { readStart } from '../requests/read-requests.js';
import type { RunWorker } from '../run-worker.js';
import { effectsNote, readHistory } from '../sessions.js';
import type { Unanswered } from '../unanswered.js';
import { screenInput } from './caller-transition.js';
import {
  decideStart,
  frozenOptions,
  submittedEntry,
  type Draft,
  type InlineStart,
  type StartDecision,
} from './start-decision.js';

/**
 * `start`: the run and its first entry are committed before any work. In a process with a free slot the run is
 * started inline: submission, claim and the first model intent are one commit, and the model is called right after it.
 */
export class StartRun {
  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly worker: RunWorker,
    private readonly publisher: LifecyclePublisher,
    private readonly pending: PendingLimit,
    private readonly unanswered: Unanswered,
  ) {}

  /**
   * @throws InvalidRequestError, AgentNotFoundError, SessionBusyError, RequestConflictError, RunExistsError,
   * TooManyPendingError, PayloadTooLargeError, ForbiddenError, StoreUnavailableError
   */
  start(options: StartOptions, context: StartContext = {}): Promise<CreateResult> {
    return this.unanswered.watch(() => this.startNow(options, context));
  }

  private async startNow(options: StartOptions, context: StartContext): Promise<CreateResult> {
    if (this.worker.brokenBy) throw this.worker.brokenBy;
    if (this.ports.beforeStart) await this.ports.beforeStart();
    const draft = await this.draft(options, context);
    const refusal = await this.screen(draft);
    const release = context.transaction === undefined && !refusal ? this.worker.reserve(draft.id) : null;
    try {
      return await this.create({ ...draft, refusal }, context, release !== null);
    } catch (error) {
      if (!AgentRunsError.is(error) || error.family !== 'store') throw error;
      if (release) this.worker.addUnconfirmedClaim(draft.id);
      const run = error.retryable && context.transaction === undefined ? await this.committed(draft) : null;
      if (!run) throw error;
      return { run, created: true };
    } finally {
      release?.();
    }
  }

  /**
   * The answer to a commit may be lost: a run that exists must not be answered as if it did not, or it is started once
   * more.
   */
  private async committed({ id, requestDigest, input }: Draft): Promise<RunRecord | null> {
    const loaded = await this.ports.store.load(id).catch(() => null);
    // An id that the caller gave may be somebody else's run.
    const isOurs =
      loaded?.run.requestDigest === requestDigest && this.ports.digester.isSame(loaded.run.actor, input.actor);
    return isOurs ? loaded.run : null;
  }

  private async create(draft: Draft, { transaction }: StartContext, mayClaim: boolean): Promise<CreateResult> {
    const admission = await this.pending.check(transaction);
    let decision = null as StartDecision | null;
    const publish = (): void => {
      if (decision?.do === 'insert') this.publisher.committed(decision.run, 1, decision.entries);
    };
    const result = await this.ports.store.create({
      runId: draft.id,
      sessionId: draft.input.sessionId,
      requestScope: draft.requestScope,
      requestId: draft.requestId,
      ...(transaction !== undefined && {
        transaction,
        onVisible: () => {
          publish();
          this.worker.wake();
        },
      }),
      decide: (situation) => {
        decision = null;
        decision = decideStart(draft, situation, mayClaim ? (seen) => this.startInline(draft, seen) : null, admission);
        return decision;
      },
    });
    if (!result.created || transaction !== undefined) return result;
    publish();
    if (decision?.do === 'insert' && decision.inline) this.adopt(draft, result.run, decision.inline);
    else {
      this.pending.added();
      this.worker.wake();
    }
    return result;
  }

  private adopt({ agent }: Draft, run: RunRecord, { state }: InlineStart): void {
    const key = state.model?.key as string;
    this.worker.adopt({ run, agent, state, begun: { do: 'call_model', key, attempt: 1 }, inboxWaiting: false });
  }

  // ---- before the store ----

  private async draft(options: StartOptions, { transaction }: StartContext): Promise<Draft> {
    const input = readStart(options, this.ports.options.maxPayloadBytes);
    const agent = this.findAgent(options);
    const id = input.runId ?? this.ports.ids.id();
    const scope = input.sessionId === null ? `agent:${agent.name}` : `session:${input.sessionId}`;
    const { digester } = this.ports;
    return {
      id,
      agent,
      input,
      requestScope: input.requestId === null ? `run:${id}` : scope,
      requestId: input.requestId ?? id,
      requestDigest: digester.digest(digester.canonical({ agent: agent.name, messages: input.messages })),
      // Only a run that is started inline needs it. None is in a transaction of the host, whose connection may be the
      // last one.
      history: await this.expectedHistory(transaction === undefined ? input.sessionId : null, agent.sessionMode),
      refusal: null,
    };
  }

  /** Once, before the run exists; a refused prompt still leaves a run that says so. */
  private async screen({ id, agent, input }: Draft): Promise<string | null> {
    return screenInput(this.ports, {
      kind: 'prompt',
      agent: agent.name,
      version: agent.version,
      runId: id,
      sessionId: input.sessionId,
      messages: input.messages,
      actor: input.actor,
    });
  }

  private findAgent({ agent, version }: StartOptions): AgentDefinition {
    const found =
      typeof agent === 'string' || typeof agent === 'function' ? this.ports.catalog.find(agent, version) : undefined;
    if (found) return found;
    const wanted = typeof agent === 'function' ? agent.name : JSON.stringify(agent);
    const known = this.ports.catalog
      .all()
      .map(({ name, version: offered }) => `${name}@${offered}`)
      .join(', ');
    throw new AgentNotFoundError(
      `No agent ${wanted}${version === undefined ? '' : `, version ${JSON.stringify(version)},`} is registered here. Registered: ${known || 'none'}.`,
    );
  }

  private async expectedHistory(sessionId: string | null, sessionMode: SessionMode): Promise<Draft['history']> {
    const { store } = this.ports;
    const session = sessionId === null ? null : await store.session(sessionId);
    const runId = session?.latestCompletedRunId ?? null;
    const order = (session?.lastOrder ?? 0) + 1;
    const history = await readHistory(store, this.fold, sessionId, runId);
    const note = await effectsNote(store, this.fold, { sessionId, sessionMode, sessionOrder: order }, history);
    return { runId, order, messages: history.messages, note };
  }

  // ---- inside the store's transaction: synchronous, pure ----

  /** Null when the session's history is not the expected one, so that it has to be read first. */
  private startInline(draft: Draft, { session, now }: CreateSituation): InlineStart | null {
    const { agent, input, history } = draft;
    const { workerId } = this.worker;
    if ((session?.latestCompletedRunId ?? null) !== history.runId) return null;
    if (agent.sessionMode === 'serial' && session && session.lastOrder + 1 !== history.order) return null;
    const state = emptyState(draft.id);
    this.fold.begin(state, history.messages);
    const entries: JournalEntry[] = [
      submittedEntry(draft, now),
      ...(history.note ? [{ type: 'history.effects', at: now, message: history.note } as const] : []),
      { type: 'run.started', at: now, attempt: 1, cause: 'submitted', owner: workerId, unownedForMs: 0 },
    ];
    for (const entry of entries) this.fold.apply(state, entry);
    const run = { frozen: frozenOptions(draft), budgetMaxTotalTokens: input.maxTotalTokens, interruptRequest: null };
    const action = nextAction(state, actionFacts(agent, run, this.ports.options.maxOperations, new Set()));
    if (action.do !== 'call_model') return null;
    const intents = intentsOf(action, state, agent, this.ports);
    for (const entry of intents) this.fold.apply(state, entry);
    return { workerId, state, entries: [...entries, ...intents] };
  }
}
