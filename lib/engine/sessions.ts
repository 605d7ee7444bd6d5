import type { Message, ToolOutcome, UserMessage } from '../contracts/message.js';
import type { LockedRun, RunStore, RunWrite } from '../contracts/ports/run-store.port.js';
import type { RunRecord, RunSummary, SessionChange } from '../contracts/run.js';
import type { RunStatus } from '../contracts/run-status.js';
import { AgentRunsError } from '../errors/agent-runs.error.js';
import { effectsOf, type Effect } from './journal/run-state.js';
import type { JournalFold } from './journal/fold-journal.js';
import { readRunState, readRunStates } from './journal/read-whole-journal.js';
import { truncateText } from './values/plain-text.js';
import { changeStatus } from './transitions.js';

/**
 * What settling a run does to its session: one run at a time, first in first out (I6), and a history that is a pointer,
 * never a copy. Part of the transaction in which the run settles; the store locks the session before the run.
 * @param completed whether the run joins the history
 */
export function advanceSession(
  locked: LockedRun,
  completed: boolean,
): { session?: SessionChange; nextInSession?: RunWrite } {
  const { session, run, nextInSession: next, now } = locked;
  if (!session) return {};
  const latestCompletedRunId = completed ? run.id : session.latestCompletedRunId;
  const joins = completed ? { latestCompletedRunId } : {};
  if (session.headRunId !== run.id) return completed ? { session: joins } : {};
  if (!next) return { session: { ...joins, headRunId: null } };
  return {
    session: { ...joins, headRunId: next.id, startedOrder: next.sessionOrder ?? session.startedOrder },
    nextInSession: changeStatus(next, 'dequeue', [{ type: 'run.dequeued', at: now, afterRunId: run.id }], {
      historyRunId: latestCompletedRunId,
      historyCaptured: true,
      wake: { cause: 'submitted' },
    }),
  };
}

/** What a run sees before its own messages. */
export interface SessionHistory {
  /** Of the completed run it points to, and of those before it, oldest first. */
  messages: Message[];
  /** The run it points to. */
  latest: EarlierRun | null;
  /** How many runs it is made of. */
  runs: number;
}

type EarlierRun = Pick<RunRecord, 'id' | 'sessionOrder' | 'startedAt' | 'precedingRunId'>;

/**
 * Reads in pages of runs and of commits, so that the statements for a long session follow what it holds, and not how
 * many runs it had.
 * @param latestRunId the completed run that the history ends with; null = there is none
 */
export async function readHistory(
  store: RunStore,
  fold: JournalFold,
  sessionId: string | null,
  latestRunId: string | null,
): Promise<SessionHistory> {
  const chain = await readChain(store, sessionId, latestRunId);
  const states = await readRunStates(
    store,
    fold,
    chain.map(({ id }) => id),
  );
  const messages = states.reverse().flatMap((state) => state?.messages ?? []);
  return { messages, latest: chain[0] ?? null, runs: chain.length };
}

/** The run and those that its history is made of, newest first. */
async function readChain(store: RunStore, sessionId: string | null, latestRunId: string | null): Promise<EarlierRun[]> {
  const chain: EarlierRun[] = [];
  const known = new Map<string, EarlierRun>();
  let cursor: string | undefined;
  let isListed = sessionId === null;
  for (let id = latestRunId; id !== null;) {
    while (!known.has(id) && !isListed) {
      const query = { sessionId: sessionId as string, statuses: ['completed'] as const, limit: 100 };
      const page = await store.list({ ...query, ...(cursor !== undefined && { cursor }) });
      for (const run of page.items) known.set(run.id, run);
      cursor = page.nextCursor;
      isListed = cursor === undefined;
    }
    // One that was restarted since is not listed as completed.
    const run = known.get(id) ?? (await store.load(id))?.run;
    if (!run) break;
    chain.push(run);
    id = run.precedingRunId;
  }
  return chain;
}

/** Settled without an answer: their messages join no history, but the next run learns what they did. */
const UNANSWERED: readonly RunStatus[] = ['failed', 'cancelled', 'timed_out', 'blocked'];
/** How many of the latest such runs are read: a start must not read all runs of an agent that does nothing but fail. */
const MAX_RUNS = 20;
const MAX_LINES = 100;
const MAX_ARGUMENTS = 300;

/**
 * The note about what earlier runs of a session did that ended without an answer, unless a note in the history is about
 * them; null when they did nothing. Reads nothing beyond the history where every earlier run completed. Results are
 * left out: what a tool returned never becomes the words of a user.
 * @param run the run that learns of it, with its place in the session
 */
export async function effectsNote(
  store: RunStore,
  fold: JournalFold,
  run: Pick<RunRecord, 'sessionId' | 'sessionOrder' | 'sessionMode'>,
  { messages, latest, runs }: SessionHistory,
): Promise<UserMessage | null> {
  const answered = run.sessionMode === 'parallel' ? runs : (latest?.sessionOrder ?? 0);
  if (run.sessionId === null || (run.sessionOrder ?? 0) - 1 <= answered) return null;
  const page = await store.list({ sessionId: run.sessionId, statuses: UNANSWERED, limit: 100 });
  const told = new Set(messages.flatMap((message) => (message.role === 'user' ? (message.runIds ?? []) : [])));
  // What had ended before the latest completed run began was reported to that one.
  const since = latest?.startedAt ?? 0;
  const untold = page.items.filter(
    ({ id, totals, finishedAt }) => totals.results > 0 && (finishedAt ?? since) >= since && !told.has(id),
  );
  const runIds: string[] = [];
  let lines: string[] = [];
  for (const ended of untold.slice(0, MAX_RUNS)) {
    const done = await linesAbout(store, fold, ended);
    if (done.length === 0) continue;
    runIds.unshift(ended.id);
    lines = [`Run ${ended.id} (${ended.status}):`, ...done, ...lines];
  }
  if (lines.length === 0) return null;
  const isWhole = lines.length <= MAX_LINES && untold.length <= MAX_RUNS && page.nextCursor === undefined;
  const text = [INTRODUCTION, ...(isWhole ? [] : ['Earlier calls are left out.']), ...lines.slice(-MAX_LINES)];
  return { role: 'user', kind: 'effects', runIds, content: [{ type: 'text', text: text.join('\n') }] };
}

const INTRODUCTION =
  'Note from the application, not from the user: earlier requests in this conversation ended without an answer, after these tool calls had been executed. Do not repeat what is done. Check what is unknown before you do it again.';

async function linesAbout(store: RunStore, fold: JournalFold, { id }: RunSummary): Promise<string[]> {
  try {
    const read = await readRunState(store, fold, id);
    return read ? effectsOf(read.state).map(lineAbout) : [];
  } catch (error) {
    // Its own trouble: the session continues without it.
    if (!AgentRunsError.is(error, 'JOURNAL_CORRUPT')) throw error;
    return ['- unknown: its journal cannot be read'];
  }
}

function lineAbout({ name, input, outcome }: Effect): string {
  return `- ${name} ${truncateText(JSON.stringify(input), MAX_ARGUMENTS)}: ${OUTCOMES[outcome] ?? 'outcome unknown, it was interrupted'}`;
}

const OUTCOMES: Partial<Record<ToolOutcome, string>> = { success: 'done', error: 'reported an error' };
