/**
 * `start`: the run and its first entry are committed before any work. In a process with a free slot the run is started inline: submission, claim
 * and the first model intent are one commit, and the model is called right after it.
 */
import {
  CONTRACT_VERSION,
  type Actor,
  type FrozenOptions,
  type RunRecord,
  type SessionMode,
  type SessionRecord,
} from '../../contracts/run.js';
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { CreateDecision, CreateSituation } from '../../contracts/ports/run-store.port.js';
import type { StartContext, StartOptions } from '../../contracts/run-requests.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { AgentNotFoundError } from '../../errors/request.errors.js';
import type { EnginePorts } from '../engine-ports.js';
import { actionFacts, intentsOf } from '../execution/intents.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { emptyState, type RunState } from '../journal/run-state.js';
import type { LifecyclePublisher } from '../lifecycle-publisher.js';
import { nextAction } from '../next-action.js';
import type { PendingLimit } from '../pending-limit.js';
import { readStart } from '../requests/read-requests.js';
import type { RunWorker } from '../run-worker.js';
import { effectsNote, readHistory } from '../sessions.js';
import { screenInput } from './screen-input.js';
import { admissionRefusal, existingRun, ownershipRefusal, type Draft } from './start-admission.js';
import { recordedFailure } from '../values/recorded-error.js';
import type { Unanswered } from '../unanswered.js';

type Insert = Extract<CreateDecision, { do: 'insert' }>;

export interface Started {
  run: RunRecord;
  created: boolean;
}

/**
 * `start`: the run and its first entry are committed before any work. In a process with a free slot the run is born
 * claimed: submission, claim and the first model intent are one commit, and the model is called right after it.
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
  start(options: StartOptions, context: StartContext = {}): Promise<Started> {
    return this.unanswered.watch(this.startNow(options, context));
  }

  private async startNow(options: StartOptions, context: StartContext): Promise<Started> {
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
    const { canonical } = this.ports.digester;
    const asText = (actor: Actor | null): string => canonical(actor);
    // An id that the caller gave may be somebody else's run.
    const isOurs = loaded?.run.requestDigest === requestDigest && asText(loaded.run.actor) === asText(input.actor);
    return isOurs ? loaded.run : null;
  }

  private async create(draft: Draft, context: StartContext, mayClaim: boolean): Promise<Started> {
    const admission = await this.pending.check(context.transaction);
    let startedInline: { state: RunState; entries: JournalEntry[] } | null = null;
    let inserted: { run: RunRecord; entries: JournalEntry[] } | null = null;
    const result = await this.ports.store.create({
      runId: draft.id,
      sessionId: draft.input.sessionId,
      requestScope: draft.requestScope,
      requestId: draft.requestId,
      ...(context.transaction !== undefined && {
        transaction: context.transaction,
        onVisible: () => {
          if (inserted) this.publisher.committed(inserted.run, 1, inserted.entries);
          this.worker.wake();
        },
      }),
      decide: (situation) => {
        startedInline = inserted = null;
        const existing = ownershipRefusal(draft, situation) ?? existingRun(draft, situation);
        if (existing) return existing;
        if (draft.refusal !== null) return (inserted = blockedRun(draft, situation, draft.refusal));
        const free =
          situation.session === null || situation.session.headRunId === null || draft.agent.sessionMode === 'parallel';
        const refusal = admissionRefusal(draft, situation, free) ?? (mayClaim && free ? null : admission());
        if (refusal) return { do: 'refuse', error: refusal };
        startedInline = mayClaim && free ? this.startInline(draft, situation) : null;
        const decision = this.insert(draft, situation, free, startedInline);
        inserted = decision;
        return decision;
      },
    });
    if (!result.created) return result;
    if (context.transaction === undefined) this.afterCreate(draft, result.run, inserted, startedInline);
    return result;
  }

  private afterCreate(
    draft: Draft,
    run: RunRecord,
    inserted: { entries: JournalEntry[] } | null,
    startedInline: { state: RunState } | null,
  ): void {
    if (inserted) this.publisher.committed(run, 1, inserted.entries);
    if (!startedInline) {
      this.pending.added();
      return this.worker.wake();
    }
    const key = startedInline.state.model?.key as string;
    this.worker.adopt({
      run,
      agent: draft.agent,
      state: startedInline.state,
      begun: { do: 'call_model', key, attempt: 1 },
      inboxWaiting: false,
    });
  }

  // ---- before the store ----

  private async draft(options: StartOptions, { transaction }: StartContext): Promise<Draft> {
    const input = readStart(options, this.ports.options.maxPayloadBytes);
    const agent = this.findAgent(options);
    const id = input.runId ?? this.ports.ids.id();
    const scope =
      input.requestId === null
        ? `run:${id}`
        : input.sessionId === null
          ? `agent:${agent.name}`
          : `session:${input.sessionId}`;
    const { canonical, digest } = this.ports.digester;
    return {
      id,
      agent,
      input,
      requestScope: scope,
      requestId: input.requestId ?? id,
      requestDigest: digest.call(
        this.ports.digester,
        canonical.call(this.ports.digester, { agent: agent.name, messages: input.messages }),
      ),
      // Only a run that is started inline needs it, and none is in a transaction of the host, whose connection may be the last one.
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
    const history = await readHistory(store, this.fold, runId);
    const note = await effectsNote(store, this.fold, { sessionId, sessionMode, sessionOrder: order }, history);
    return { runId, order, messages: history.messages, note };
  }

  // ---- inside the store's transaction: synchronous, pure ----

  /** The whole first step as entries; null when the session's history is not the expected one, so that it has to be read first. */
  private startInline(
    draft: Draft,
    { session, now }: CreateSituation,
  ): { state: RunState; entries: JournalEntry[] } | null {
    const { history } = draft;
    if ((session?.latestCompletedRunId ?? null) !== history.runId) return null;
    if (draft.agent.sessionMode === 'serial' && session && session.lastOrder + 1 !== history.order) return null;
    const state = emptyState(draft.id);
    this.fold.begin(state, history.messages);
    const entries: JournalEntry[] = [
      submitted(draft, now),
      ...(history.note ? [{ type: 'history.effects', at: now, message: history.note } as const] : []),
      { type: 'run.started', at: now, attempt: 1, cause: 'submitted', owner: this.worker.workerId, unownedForMs: 0 },
    ];
    for (const entry of entries) this.fold.apply(state, entry);
    const action = nextAction(
      state,
      actionFacts(
        draft.agent,
        { frozen: frozen(draft), budgetMaxTotalTokens: draft.input.maxTotalTokens, interruptRequest: null },
        this.ports.options.maxOperations,
        new Set(),
      ),
    );
    if (action.do !== 'call_model') return null;
    const intents = intentsOf(action, state, draft.agent, this.ports);
    for (const entry of intents) this.fold.apply(state, entry);
    return { state, entries: [...entries, ...intents] };
  }

  private insert(
    draft: Draft,
    { session, now }: CreateSituation,
    free: boolean,
    startedInline: { state: RunState; entries: JournalEntry[] } | null,
  ): Insert {
    const order = session ? session.lastOrder + 1 : draft.input.sessionId === null ? null : 1;
    const run = newRun(draft, now);
    const parallel = draft.agent.sessionMode === 'parallel';
    Object.assign(run, {
      sessionOrder: order,
      status: startedInline ? 'running' : free ? 'pending' : 'queued',
      historyCaptured: startedInline !== null || (free && !parallel),
      historyRunId: startedInline || (free && !parallel) ? (session?.latestCompletedRunId ?? null) : null,
      ...(startedInline
        ? { attempt: 1, owner: this.worker.workerId, claimedAt: now, startedAt: now }
        : { wake: { cause: 'submitted' } }),
    } satisfies Partial<RunRecord>);
    const entries = startedInline?.entries ?? [
      submitted(draft, now),
      ...(free ? [] : [{ type: 'run.queued', at: now, behindRunId: session?.headRunId ?? '' } as const]),
    ];
    return {
      do: 'insert',
      run,
      entries,
      totals: startedInline?.state.totals ?? run.totals,
      session: nextSession(draft, session, run, free),
    };
  }
}

/** Settled from its first moment: it never holds its session and its model is never called. */
function blockedRun(draft: Draft, { session, now }: CreateSituation, reason: string): Insert {
  const error = recordedFailure('INPUT_REFUSED', `The prompt was refused: ${reason}`);
  const run: RunRecord = { ...newRun(draft, now), status: 'blocked', error, finishedAt: now };
  run.sessionOrder = session ? session.lastOrder + 1 : draft.input.sessionId === null ? null : 1;
  const entries: JournalEntry[] = [submitted(draft, now), { type: 'run.blocked', at: now, error }];
  return { do: 'insert', run, entries, totals: run.totals, session: nextSession(draft, session, run, false) };
}

function submitted({ input }: Draft, at: number): JournalEntry {
  return { type: 'run.submitted', at, messages: input.messages, ...(input.actor && { actor: input.actor }) };
}

function frozen({ agent, input }: Draft): FrozenOptions {
  return {
    maxTurns: agent.maxTurns,
    modelRetry: agent.modelRetry,
    toolConcurrency: agent.toolConcurrency,
    maxDurationMs: input.maxDurationMs ?? agent.maxDurationMs,
    recovery: Object.fromEntries(agent.tools.map((tool) => [`${tool.name}@${tool.version}`, tool.recovery])),
  };
}

function nextSession(
  { agent, input }: Draft,
  session: SessionRecord | null,
  run: RunRecord,
  free: boolean,
): SessionRecord | null {
  if (input.sessionId === null || run.sessionOrder === null) return null;
  const before: SessionRecord = session ?? {
    id: input.sessionId,
    mode: agent.sessionMode,
    owner: input.sessionOwner,
    headRunId: null,
    latestCompletedRunId: null,
    lastOrder: 0,
    startedOrder: 0,
  };
  return {
    ...before,
    lastOrder: run.sessionOrder,
    ...(free && { startedOrder: run.sessionOrder, headRunId: agent.sessionMode === 'serial' ? run.id : null }),
  };
}

function newRun(draft: Draft, now: number): RunRecord {
  const { agent, input } = draft;
  return {
    id: draft.id,
    kind: 'agent',
    agent: agent.name,
    version: agent.version,
    definitionHash: agent.hash,
    contractVersion: CONTRACT_VERSION,
    sessionId: input.sessionId,
    sessionMode: input.sessionId === null ? null : agent.sessionMode,
    sessionOrder: null,
    historyRunId: null,
    historyCaptured: false,
    precedingRunId: null,
    requestScope: draft.requestScope,
    requestId: draft.requestId,
    requestDigest: draft.requestDigest,
    status: 'pending',
    revision: 1,
    waitingFor: [],
    attention: null,
    attempt: 0,
    owner: null,
    wake: null,
    nextAttemptAt: null,
    deadlineAt: input.deadlineAt,
    interruptRequest: null,
    recoveries: 0,
    resultsAtClaim: 0,
    restarts: 0,
    budgetMaxTotalTokens: input.maxTotalTokens,
    actor: input.actor,
    frozen: frozen(draft),
    output: null,
    error: null,
    metadata: input.metadata,
    activeMs: 0,
    claimedAt: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
    sequence: 0,
    totals: emptyState(draft.id).totals,
  };
}
