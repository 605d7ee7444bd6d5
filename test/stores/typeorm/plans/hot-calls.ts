// What is asked of a store again and again, and how many rows it may read for it, of all tables together and however many there are.
import type { DueQuery, OverdueQuery, RunStore } from '../../../../lib/contracts/ports/run-store.port.js';
import { statusesOf } from '../../../../lib/contracts/run-status.js';
import {
  anInteraction,
  appendNotes,
  beat,
  claim,
  OFFER,
  settleInSession,
  submit,
  upTo,
} from '../../../../packages/contract/lib/scenario.js';
import {
  COMMON_ACTOR,
  COMMON_TENANT,
  FOREIGN_AGENT,
  LONG_SESSION,
  RARE_ACTOR,
  RARE_AGENT,
  RARE_TENANT,
  type CrowdSize,
} from './crowd.js';

export interface HotCall {
  title: string;
  atMost: number | ((size: CrowdSize) => number);
  /** What it counts or looks through may be the better part of a table, which is then best read from end to end. */
  mayScan?: true;
  call: (store: RunStore) => Promise<unknown>;
}

const PAGE = 20;
/** For each run that is shown: its row, its place in an index, the end of its journal. */
const PAGE_ROWS = (PAGE + 1) * 8;

const DUE: DueQuery = { offers: [OFFER], contractVersion: 1, limit: 10, takeovers: false, held: [] };
const OVERDUE: OverdueQuery = {
  liveOffers: [OFFER, { ...OFFER, agent: FOREIGN_AGENT }],
  contractVersion: 1,
  unofferedAfterMs: 60_000,
  limit: 200,
};

export const WORKER_CALLS: readonly HotCall[] = [
  { title: 'the look for due runs of a worker with free slots', atMost: 20, call: (store) => store.due(DUE) },
  {
    title: 'the look for due runs of a worker that finds none',
    atMost: 10,
    call: (store) => store.due({ ...DUE, offers: [{ ...OFFER, agent: 'idle' }] }),
  },
  {
    title: 'the look for due runs of a worker that accepts changed definitions',
    atMost: 50,
    call: (store) => store.due({ ...DUE, offers: [{ ...OFFER, hash: null }] }),
  },
  {
    title: 'the look for due runs, for takeovers and at the runs held',
    atMost: 60,
    call: (store) => store.due({ ...DUE, takeovers: true, held: ['running-1', 'running-2'] }),
  },
  { title: 'the look of the sweeps', atMost: 60, call: (store) => store.overdue(OVERDUE) },
  { title: 'a heartbeat', atMost: 10, call: (store) => beat(store, 'worker-live') },
  { title: 'the live workers', atMost: 10, call: (store) => store.liveWorkers() },
  { title: 'the claim of a run', atMost: 20, call: (store) => claim(store, 'pending-1', 'worker-live') },
  {
    title: 'claims that share a transaction',
    atMost: 200,
    call: (store) => Promise.all(upTo(16).map((n) => claim(store, `pending-${n + 20}`, 'worker-live'))),
  },
  { title: 'an append', atMost: 20, call: (store) => appendNotes(store, 'running-1', 1, ['a']) },
  {
    title: 'appends that share a transaction',
    atMost: 300,
    call: (store) => Promise.all(upTo(16).map((n) => appendNotes(store, `running-${n}`, 1, ['a']))),
  },
  {
    title: 'the end of a run whose session goes on',
    atMost: 40,
    call: async (store) => {
      await submit(store, { id: 'first', sessionId: 'talk' });
      await submit(store, { id: 'second', sessionId: 'talk' });
      await settleInSession(store, 'first', 'completed');
    },
  },
];

export const CALLER_CALLS: readonly HotCall[] = [
  {
    title: 'a submission',
    atMost: 20,
    call: (store) => submit(store, { id: 'new', metadata: { tenant: 'new' } }),
  },
  {
    title: 'submissions that share a transaction',
    atMost: 300,
    call: (store) => Promise.all(upTo(16).map((n) => submit(store, { id: `new-${n}`, metadata: { tenant: 'new' } }))),
  },
  {
    title: 'a repeated submission',
    atMost: 20,
    call: (store) => submit(store, { id: 'settled-7', requestScope: 'settled-7', requestId: 'settled-7' }),
  },
  { title: 'a count of pending runs', atMost: 400, call: (store) => store.countPending(200) },
  {
    title: 'the answer to an ask',
    atMost: 40,
    call: (store) =>
      store.transition({
        runId: 'waiting-7',
        decide: ({ interactions: [asked], now }) => ({
          result: null,
          run: { change: { status: 'pending', waitingFor: [] }, entries: [] },
          interactions: [{ ...anInteraction(), ...asked, status: 'approved', decidedAt: now }],
        }),
      }),
  },
  { title: 'a run', atMost: 20, call: (store) => store.load('waiting-8') },
  { title: 'the journal of a run', atMost: 60, call: (store) => store.readJournal('settled-7', 0, 500) },
  { title: 'the end of a journal', atMost: 20, call: (store) => store.readJournal('settled-7', 2, 1) },
  {
    title: 'the metrics',
    // The bounds of its counts: ten thousand of each of the statuses, of asks and of the journal.
    atMost: 100_000,
    mayScan: true,
    call: (store) => store.metrics(),
  },
];

/** Within what the crowd was made in. */
const WHILE = { createdSince: Date.now() - 55 * 60_000, createdBefore: Date.now() - 10_000 };

const page = (title: string, query: Parameters<RunStore['list']>[0] | object, atMost = PAGE_ROWS): HotCall => ({
  title: `a page of ${title}`,
  atMost,
  call: (store) => store.list({ limit: PAGE, ...query }),
});

export const LIST_CALLS: readonly HotCall[] = [
  page('all runs', {}),
  page('a common status', { statuses: ['completed'] }),
  page('a status that no run has', { statuses: ['blocked'] }),
  page('settled runs', { statuses: statusesOf('settled') }, 2 * PAGE_ROWS),
  page('active runs', { statuses: statusesOf('active') }, 2 * PAGE_ROWS),
  page('a common agent', { agent: 'support' }, 2 * PAGE_ROWS),
  page('a rare agent', { agent: RARE_AGENT }, 2 * PAGE_ROWS),
  page('an agent that no run has', { agent: 'none' }),
  page('an agent whose name no agent can have', { agent: 'n\u00f6ne' }),
  page('an agent and a status that it never has', { agent: RARE_AGENT, statuses: ['waiting'] }),
  page('a common actor', { actorId: COMMON_ACTOR }, 3 * PAGE_ROWS),
  page('a rare actor', { actorId: RARE_ACTOR }, 2 * PAGE_ROWS),
  page('an actor of no run', { actorId: 'n\u00f6body' }),
  page('a common actor and statuses that its runs never have', {
    actorId: COMMON_ACTOR,
    statuses: ['blocked', 'cancelled'],
  }),
  page('the runs of a while', WHILE),
  page('the runs of a while with a common status', { ...WHILE, statuses: ['completed'] }),
  page('the runs of a while and of a common actor', { ...WHILE, actorId: COMMON_ACTOR }, 2 * PAGE_ROWS),
  page('the runs of a while with a common metadata value', { ...WHILE, metadata: { tenant: COMMON_TENANT } }),
  page('the runs of a while long before', { createdBefore: 1 }),
  page('a session', { sessionId: LONG_SESSION }, 2 * PAGE_ROWS),
  page('a session and a status that none of its runs has', { sessionId: LONG_SESSION, statuses: ['waiting'] }),
  page('a common metadata value', { metadata: { tenant: COMMON_TENANT } }),
  page('a rare metadata value', { metadata: { tenant: RARE_TENANT } }),
  page('a metadata value that no run has', { metadata: { tenant: 'none' } }),
  {
    title: 'a later page',
    atMost: 4 * PAGE_ROWS,
    call: async (store) => {
      const statuses = statusesOf('settled');
      const { nextCursor } = await store.list({ limit: PAGE, statuses });
      await store.list({ limit: PAGE, statuses, cursor: nextCursor });
    },
  },
];

const asks = (title: string, query: object, more: Partial<HotCall> = {}): HotCall => ({
  title: `a page of ${title}`,
  atMost: 3 * PAGE,
  call: (store) => store.interactions({ limit: PAGE, statuses: ['pending'], ...query }),
  ...more,
});

export const INBOX_CALLS: readonly HotCall[] = [
  asks('open asks', {}),
  asks('asks of any status', { statuses: undefined }, { atMost: 20 * PAGE }),
  asks('open questions', { kind: 'question' }),
  asks('open asks of a while', WHILE),
  asks('open asks of a while long before', { createdBefore: 1 }),
  asks('open asks of a run', { runId: 'waiting-8' }),
  asks('open asks of a session', { sessionId: 'asking-8' }),
  asks('open asks of a rare agent', { agent: RARE_AGENT }),
  asks('open asks of a common role', { approverRole: 'finance' }),
  asks('open asks of a rare role', { approverRole: 'auditor' }),
  asks(
    'open asks of runs with a common metadata value',
    { metadata: { tenant: COMMON_TENANT } },
    { atMost: 10 * PAGE },
  ),
  asks('open asks of runs of a common actor', { actorId: COMMON_ACTOR }, { atMost: 10 * PAGE }),
  // As for metadata below: whichever are fewer, the runs of the actor or the open asks.
  asks(
    'open asks of runs of a rare actor',
    { actorId: RARE_ACTOR },
    { mayScan: true, atMost: ({ waiting }) => 4 * waiting },
  ),
  // No index leads from a value of runs to their open asks: it looks through the runs with the value, or through the open asks, whichever are fewer.
  asks(
    'open asks of runs with a rare metadata value',
    { metadata: { tenant: RARE_TENANT } },
    {
      mayScan: true,
      atMost: ({ waiting }) => 4 * waiting,
    },
  ),
];
