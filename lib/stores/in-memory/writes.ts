import type { InboxMessage, Interaction } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type {
  AppendRequest,
  CreateRequest,
  CreateResult,
  LockedRun,
  RunWrite,
  TransitionDecision,
  TransitionRequest,
  TransitionResult,
} from '../../contracts/ports/run-store.port.js';
import type { RunRecord, RunTotals } from '../../contracts/run.js';
import {
  isOwnedBy,
  isSpent,
  misplacedAppend,
  requireOwned,
  requireQueued,
  requireReplaceable,
  requireSettledStays,
  takenRun,
  unlockedChange,
} from '../../contracts/store-rules.js';
import { detached, encodePayload } from '../codec/payload-codec.js';
import { byAsk } from './queries.js';
import { leaseOf } from './sweeps.js';
import type { TablesChange, InMemoryTables, JournalRow, Written } from './tables.js';

/**
 * The three ways in which a run changes: create, append, transition. Each runs in one turn of the event loop, which is its lock: it reads, asks the
 * decider with detached copies, checks, and only then commits, so that a refusal of any kind writes nothing. Every append is fenced by attempt and
 * status (I3), settled runs are left only as the transition table allows (I4).
 */
export function create(tables: InMemoryTables, now: number, request: CreateRequest): Written<CreateResult> {
  const session = request.sessionId === null ? undefined : tables.sessions.get(request.sessionId);
  const sameRequest = tables.runOfRequest(request.requestScope, request.requestId);
  const sameId = tables.runs.get(request.runId);
  const decision = request.decide({
    now,
    session: session ? detached(session) : null,
    sameRequest: sameRequest ? detached(sameRequest) : null,
    sameId: sameId ? detached(sameId) : null,
  });
  if (decision.do === 'return') return { value: { run: decision.run, created: false }, commit: null };
  const totals = detached(decision.totals);
  const run: RunRecord = { ...detached(decision.run), revision: 1, sequence: 0, totals };
  const taken = tables.runs.get(run.id) ?? tables.runOfRequest(run.requestScope, run.requestId);
  if (taken) throw takenRun(run, taken);
  const changes: TablesChange[] = [{ kind: 'run', run }];
  if (decision.entries.length > 0) {
    changes.push({ kind: 'journal', runId: run.id, row: rowOf(run.id, 1, run.attempt, decision.entries, totals) });
  }
  if (decision.session) changes.push({ kind: 'session', session: detached(decision.session) });
  const commit = tables.commit(changes);
  return { value: { run: detached(tables.runs.get(run.id) as RunRecord), created: true }, commit };
}

export function append(tables: InMemoryTables, request: AppendRequest): Written<void> {
  const { runId, attempt, firstSequence, entries } = request;
  const run = tables.runs.get(runId);
  const row = rowOf(runId, firstSequence, attempt, entries, detached(request.totals));
  if (run && isOwnedBy(run, attempt) && firstSequence === run.sequence + 1) {
    return { value: undefined, commit: tables.commit(entries.length > 0 ? [{ kind: 'journal', runId, row }] : []) };
  }
  // Before the fence: what landed stands, even if the run was taken away before its owner could be told.
  const stored = tables.journals.get(runId)?.find((one) => one.first === firstSequence);
  if (stored && stored.attempt === attempt && stored.entries === row.entries) return { value: undefined, commit: null };
  requireOwned(request, run);
  throw misplacedAppend(request, entries.length, run.sequence);
}

export function transition<T>(
  tables: InMemoryTables,
  now: number,
  request: TransitionRequest<T>,
): Written<TransitionResult<T>> {
  const run = tables.runs.get(request.runId);
  if (!run) return { value: { outcome: 'not_found' }, commit: null };
  const locked = lock(tables, now, run, request);
  const nextId = locked.nextInSession?.id;
  const sessionId = locked.session?.id;
  const decision = request.decide(locked);
  const changes = [
    ...(decision.run ? planRunWrite(run, decision.run, now) : []),
    ...planNeighbours(tables, now, decision, { nextId, sessionId }),
    ...(decision.interactions ?? []).map((interaction) => planInteraction(tables, interaction)),
    ...(decision.inbox ?? []).map((message) => planInbox(tables, message)),
  ];
  const commit = tables.commit(changes);
  const after = detached(tables.runs.get(run.id) as RunRecord);
  return { value: { outcome: 'done', result: decision.result, run: after }, commit };
}

function lock(
  tables: InMemoryTables,
  now: number,
  run: RunRecord,
  { session: withSession, inboxRequestId }: Pick<TransitionRequest<never>, 'session' | 'inboxRequestId'>,
): LockedRun {
  const session = withSession === true && run.sessionId !== null ? tables.sessions.get(run.sessionId) : undefined;
  const next = session ? tables.nextQueued(session.id, run.id) : null;
  const messages = [...(tables.inboxes.get(run.id)?.values() ?? [])];
  const shown = messages.filter(({ requestId, status }) =>
    inboxRequestId === undefined ? status === 'queued' : requestId === inboxRequestId,
  );
  return {
    now,
    run: detached(run),
    lease: leaseOf(tables, run),
    interactions: detached(
      tables
        .interactionsOf(run.id)
        .filter((one) => !isSpent(one))
        .sort(byAsk),
    ),
    inbox: detached(shown.sort((a, b) => a.order - b.order)),
    lastMessageOrder: messages.reduce((last, { order }) => Math.max(last, order), 0),
    session: session ? detached(session) : null,
    nextInSession: next && detached(next),
  };
}

function planRunWrite(run: RunRecord, write: RunWrite, now: number): TablesChange[] {
  const change = detached(write.change);
  requireSettledStays(run, change);
  const changes: TablesChange[] = [];
  const totals = detached(write.totals ?? run.totals);
  if (Object.keys(change).length > 0) {
    changes.push({ kind: 'header', runId: run.id, change: { ...change, revision: run.revision + 1, updatedAt: now } });
  }
  if (write.entries.length > 0) {
    const row = rowOf(run.id, run.sequence + 1, change.attempt ?? run.attempt, write.entries, totals);
    changes.push({ kind: 'journal', runId: run.id, row });
  } else if (write.totals) {
    changes.push({ kind: 'header', runId: run.id, change: { totals } });
  }
  return changes;
}

function planNeighbours(
  tables: InMemoryTables,
  now: number,
  decision: TransitionDecision<unknown>,
  locked: { nextId: string | undefined; sessionId: string | undefined },
): TablesChange[] {
  const changes: TablesChange[] = [];
  if (decision.session) {
    const session = locked.sessionId === undefined ? undefined : tables.sessions.get(locked.sessionId);
    if (!session) throw unlockedChange('a session');
    changes.push({ kind: 'session', session: { ...session, ...detached(decision.session) } });
  }
  if (decision.nextInSession) {
    const next = locked.nextId === undefined ? undefined : tables.runs.get(locked.nextId);
    if (!next) throw unlockedChange('a next run of the session');
    changes.push(...planRunWrite(next, decision.nextInSession, now));
  }
  return changes;
}

function planInteraction(tables: InMemoryTables, given: Interaction): TablesChange {
  const interaction = detached(given);
  const stored = tables.interactions.get(interaction.id);
  if (stored) requireReplaceable(stored, interaction);
  return { kind: 'interaction', interaction };
}

function planInbox(tables: InMemoryTables, given: InboxMessage): TablesChange {
  const message = detached(given);
  const stored = tables.inboxes.get(message.runId)?.get(message.requestId);
  if (stored) requireQueued(stored);
  return { kind: 'inbox', message };
}

function rowOf(
  runId: string,
  first: number,
  attempt: number,
  entries: readonly JournalEntry[],
  totals: RunTotals,
): JournalRow {
  return { first, count: entries.length, attempt, entries: encodePayload(runId, 'entries', entries), totals };
}
