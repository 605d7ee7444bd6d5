import assert from 'node:assert/strict';
import type {
  CreateResult,
  ErrorCode,
  Interaction,
  JournalEntry,
  JsonValue,
  LockedRun,
  Offer,
  RunChange,
  RunRecord,
  RunStatus,
  RunStore,
  RunTotals,
  SequencedEntry,
  SessionRecord,
} from 'nestjs-agent-runs';
import type { StoreSubject } from './store-case.js';

// The cases import nothing of the package but types: what is stored is spelled out here, once more, as any store meets it.

const SETTLED_STATUSES = ['completed', 'failed', 'cancelled', 'blocked', 'timed_out'] as const;

// What the cases tell a store to do: runs, entries and deciders of the plainest kind. The deciders stand in for the engine; they decide by nothing but
// what the store shows them.

export const STATUSES = [
  'queued',
  'pending',
  'running',
  'retry_wait',
  'waiting',
  'interrupted',
  'needs_attention',
  ...SETTLED_STATUSES,
] as const satisfies readonly RunStatus[];

export const isSettled = (status: RunStatus): boolean => (SETTLED_STATUSES as readonly RunStatus[]).includes(status);

const NO_USAGE = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
  unknownCalls: 0,
};

export const OFFER: Offer = { agent: 'support', version: '1', hash: 'hash-1' };

/** Longer than any case takes. */
export const LONG_LEASE_MS = 600_000;

export function totalsOf(results: number): RunTotals {
  return { turn: results, results, usage: { ...NO_USAGE, totalTokens: results * 10 } };
}

/** An entry that carries any value. */
export function note(output: JsonValue): JournalEntry {
  return { type: 'operation.late_result', at: 1_700_000_000_001, key: 'r1.m1.t0', attempt: 1, output };
}

/** The values of entries made by {@link note}. */
export function notesOf(entries: readonly JournalEntry[]): JsonValue[] {
  return entries.flatMap((entry) => (entry.type === 'operation.late_result' ? [entry.output as JsonValue] : []));
}

/** A pending run of its own request, without a session. */
export function aRun(now: number, overrides: Partial<RunRecord> = {}): RunRecord {
  const id = overrides.id ?? 'run-1';
  return {
    id,
    kind: 'agent',
    agent: OFFER.agent,
    version: OFFER.version,
    definitionHash: 'hash-1',
    contractVersion: 1,
    sessionId: null,
    sessionMode: null,
    sessionOrder: null,
    historyRunId: null,
    historyCaptured: true,
    precedingRunId: null,
    requestScope: `run:${id}`,
    requestId: id,
    requestDigest: 'digest',
    status: 'pending',
    revision: 1,
    waitingFor: [],
    attention: null,
    attempt: 0,
    owner: null,
    wake: { cause: 'submitted' },
    nextAttemptAt: null,
    deadlineAt: null,
    interruptRequest: null,
    recoveries: 0,
    resultsAtClaim: 0,
    restarts: 0,
    budgetMaxTotalTokens: null,
    actor: { id: 'alice', roles: ['support'] },
    frozen: {
      maxTurns: 20,
      modelRetry: { maxAttempts: 3, initialDelayMs: 1_000, maxDelayMs: 30_000, maxRetryAfterMs: 600_000 },
      toolConcurrency: 8,
      maxDurationMs: null,
      recovery: { 'lookup_order@1': 'safe' },
    },
    output: null,
    error: null,
    metadata: {},
    activeMs: 0,
    claimedAt: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
    sequence: 0,
    totals: totalsOf(0),
    ...overrides,
  };
}

export interface SubmitExtras {
  entries?: JournalEntry[];
  totals?: RunTotals;
  onVisible?: () => void;
  /** Of the host, to join. */
  transaction?: unknown;
  /** Of a new session. */
  sessionOwner?: string;
  /** Is shown the session that the run is placed in, each time it is decided about. */
  look?: (session: SessionRecord | null) => void;
}

/** Inserts the run; returns the one that has its request already; refuses an id that is taken. */
export function submit(
  store: RunStore,
  overrides: Partial<RunRecord> = {},
  extras: SubmitExtras = {},
): Promise<CreateResult> {
  const { id, sessionId, requestScope, requestId } = aRun(0, overrides);
  return store.create({
    runId: id,
    sessionId,
    requestScope,
    requestId,
    ...(extras.onVisible ? { onVisible: extras.onVisible } : {}),
    ...(extras.transaction === undefined ? {} : { transaction: extras.transaction }),
    decide: ({ now, sameRequest, sameId, session }) => {
      if (sameRequest) return { do: 'return', run: sameRequest };
      if (sameId) throw new Error(`${id} exists`);
      const entries: JournalEntry[] = extras.entries ?? [{ type: 'run.submitted', at: now, messages: [] }];
      const totals = extras.totals ?? totalsOf(0);
      if (sessionId === null) return { do: 'insert', run: aRun(now, overrides), entries, totals, session: null };
      extras.look?.(session);
      const placed = placeInSession(sessionId, id, session, extras.sessionOwner);
      return {
        do: 'insert',
        run: aRun(now, { ...overrides, ...placed.run }),
        entries,
        totals,
        session: placed.session,
      };
    },
  });
}

/** The place of the next run of a serial session: at its head when nobody holds it, else queued. */
function placeInSession(
  sessionId: string,
  runId: string,
  session: SessionRecord | null,
  owner: string | null = null,
): { run: Partial<RunRecord>; session: SessionRecord } {
  const order = (session?.lastOrder ?? 0) + 1;
  const latestCompletedRunId = session?.latestCompletedRunId ?? null;
  const isHead = (session?.headRunId ?? null) === null;
  return {
    run: {
      sessionMode: 'serial',
      sessionOrder: order,
      status: isHead ? 'pending' : 'queued',
      historyCaptured: isHead,
      historyRunId: isHead ? latestCompletedRunId : null,
    },
    session: {
      id: sessionId,
      mode: 'serial',
      owner: session ? session.owner : owner,
      headRunId: isHead ? runId : (session?.headRunId ?? null),
      latestCompletedRunId,
      lastOrder: order,
      startedOrder: isHead ? order : (session?.startedOrder ?? 0),
    },
  };
}

/** Settles a run of a session; the next queued one moves up in the same transaction, when this run held the session. */
export async function settleInSession(
  store: RunStore,
  runId: string,
  status: 'completed' | 'failed' | 'cancelled',
): Promise<RunRecord> {
  const settled = await store.transition({
    runId,
    session: true,
    decide: ({ now, run, session, nextInSession: next }) => {
      assert.ok(session, 'the session is shown');
      const completed = status === 'completed' ? { latestCompletedRunId: run.id } : {};
      const history = completed.latestCompletedRunId ?? session.latestCompletedRunId;
      const settle = {
        change: { status, finishedAt: now, precedingRunId: run.historyRunId },
        entries: [{ type: 'run.cancelled' as const, at: now }],
      };
      if (session.headRunId !== run.id) return { result: undefined, run: settle, session: completed };
      if (!next) return { result: undefined, run: settle, session: { ...completed, headRunId: null } };
      return {
        result: undefined,
        run: settle,
        session: { ...completed, headRunId: next.id, startedOrder: next.sessionOrder ?? 0 },
        nextInSession: {
          change: { status: 'pending', historyRunId: history, historyCaptured: true },
          entries: [{ type: 'run.dequeued', at: now, afterRunId: run.id }],
        },
      };
    },
  });
  assert.equal(settled.outcome, 'done');
  return settled.run;
}

/** Writes a change, whatever the run is; the run as after it. */
export async function change(
  store: RunStore,
  runId: string,
  to: RunChange,
  entries: JournalEntry[] = [],
): Promise<RunRecord> {
  const done = await store.transition({ runId, decide: () => ({ result: null, run: { change: to, entries } }) });
  assert.equal(done.outcome, 'done');
  return done.run;
}

export function isClaimable({ run, lease, now }: LockedRun): boolean {
  if (run.status === 'retry_wait') return (run.nextAttemptAt ?? 0) <= now;
  if (run.status === 'running') return (lease?.expiresAt ?? 0) <= now;
  return run.status === 'pending';
}

/** Claims a run for a worker. @returns the new attempt; null when it is somebody else's */
export async function claim(store: RunStore, runId: string, workerId: string): Promise<number | null> {
  const claimed = await store.transition<number | null>({
    runId,
    decide: (locked) => {
      if (!isClaimable(locked)) return { result: null };
      const { run, now } = locked;
      const attempt = run.attempt + 1;
      return {
        result: attempt,
        run: {
          change: { status: 'running', attempt, owner: workerId, claimedAt: now, nextAttemptAt: null, wake: null },
          entries: [
            {
              type: 'run.started',
              at: now,
              attempt,
              cause: 'submitted',
              owner: workerId,
              unownedForMs: now - run.updatedAt,
            },
          ],
        },
      };
    },
  });
  return claimed.outcome === 'done' ? claimed.result : null;
}

/** A run that a worker with a long lease owns, at attempt 1. */
export async function running(
  store: RunStore,
  overrides: Partial<RunRecord> = {},
  workerId = 'worker-1',
): Promise<RunRecord> {
  const { run } = await submit(store, overrides);
  await beat(store, workerId);
  assert.equal(await claim(store, run.id, workerId), 1, 'a pending run is claimed');
  return loaded(store, run.id);
}

/** Appends notes as the owner of an attempt, right behind what is there. */
export async function appendNotes(
  store: RunStore,
  runId: string,
  attempt: number,
  values: JsonValue[],
  totals = totalsOf(0),
): Promise<void> {
  const { sequence } = await loaded(store, runId);
  await store.append({ runId, attempt, firstSequence: sequence + 1, entries: values.map(note), totals, isNext: true });
}

export function beat(
  store: RunStore,
  workerId: string,
  leaseMs = LONG_LEASE_MS,
  offers: readonly Offer[] = [OFFER],
): Promise<{ now: number; leaseExpiresAt: number }> {
  return store.heartbeat({ workerId, leaseMs, startedAt: 1_700_000_000_000, offers });
}

/** Lets a worker's lease run out. */
export async function expire({ store, wait }: Pick<StoreSubject, 'store' | 'wait'>, workerId: string): Promise<void> {
  await beat(store, workerId, 1);
  await wait(30);
}

export async function loaded(store: RunStore, runId: string): Promise<RunRecord> {
  const found = await store.load(runId);
  assert.ok(found, `run ${runId} is there`);
  return found.run;
}

/** The whole journal, read in pages. */
export async function journal(store: RunStore, runId: string, limit = 1_000): Promise<SequencedEntry[]> {
  const entries: SequencedEntry[] = [];
  for (;;) {
    const page = await store.readJournal(runId, entries.at(-1)?.sequence ?? 0, limit);
    assert.ok(page, `run ${runId} is there`);
    // Also what ends this loop with a store that gives the same page again and again.
    assert.deepEqual(
      page.entries.map(({ sequence }) => sequence),
      page.entries.map((_, index) => entries.length + index + 1),
      'entries come gapless and in order',
    );
    entries.push(...page.entries);
    if (page.entries.length < limit) return entries;
  }
}

export function anInteraction(overrides: Partial<Interaction> = {}): Interaction {
  return {
    id: 'run-1/r1.m1.t0',
    runId: 'run-1',
    sessionId: null,
    agent: OFFER.agent,
    version: OFFER.version,
    actor: { id: 'alice' },
    kind: 'approval',
    status: 'pending',
    operationKey: 'r1.m1.t0',
    ordinal: 0,
    callId: 'call-1',
    tool: 'refund_payment',
    arguments: { orderId: 'o-1', amountCents: 20_000 },
    digest: 'digest-1',
    reason: null,
    risk: null,
    approverRole: null,
    questions: null,
    decision: null,
    createdAt: 1_700_000_000_000,
    expiresAt: null,
    decidedAt: null,
    ...overrides,
  };
}

/** Inserts or replaces interactions of a run. */
export async function ask(store: RunStore, interactions: Interaction[], runId = 'run-1'): Promise<void> {
  const done = await store.transition({ runId, decide: () => ({ result: null, interactions }) });
  assert.equal(done.outcome, 'done');
}

/** Equal as JSON, key order aside; `null` and absent differ. */
export function sameJson(actual: unknown, expected: unknown, what: string): void {
  const [a, b] = [sortedJson(actual), sortedJson(expected)];
  if (a === b) return;
  const at = [...a].findIndex((character, index) => character !== b[index]);
  const near = (text: string) => text.slice(Math.max(0, at - 60), at + 60);
  assert.fail(`${what}: stored and given differ at character ${at}: got …${near(a)}…, expected …${near(b)}…`);
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

interface BrandedError {
  code: ErrorCode;
  family: string;
}

/** An error of the package, known by its brand; undefined for any other. */
export function brandedError(error: unknown): BrandedError | undefined {
  const isBranded = typeof error === 'object' && error !== null && Symbol.for('nestjs-agent-runs:error') in error;
  return isBranded ? (error as unknown as BrandedError) : undefined;
}

/** Rejected by an error of the package with the code. */
export async function refusedWith(code: ErrorCode, work: Promise<unknown>, what: string): Promise<void> {
  const outcome = await work.then(
    () => 'it was accepted',
    (error: unknown) => brandedError(error)?.code ?? `it was ${error instanceof Error ? error.stack : String(error)}`,
  );
  assert.equal(outcome, code, `${what} is refused with ${code}`);
}

/** 1, 2, 3 … up to a number. */
export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** Looks again and again until the writing has ended, in one way or the other. */
export async function whileWriting(write: () => Promise<void>, look: () => Promise<void>): Promise<void> {
  let isWriting = true;
  const written = write().finally(() => {
    isWriting = false;
  });
  const watch = async () => {
    while (isWriting) await look();
  };
  await Promise.all([written, watch()]);
}
