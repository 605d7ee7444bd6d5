import { commitText } from '../../../lib/stores/file/log-format.js';
import { dump, type TablesChange, type TablesCommit, InMemoryTables } from '../../../lib/stores/in-memory/tables.js';
import { RUN_STATUSES } from '../../../lib/contracts/run-status.js';
import { aRun, anInteraction, totalsOf } from '../../../packages/contract/lib/scenario.js';

/** Everything the tables answer, indexes included. */
function picture(tables: InMemoryTables): unknown {
  return {
    dump: [...dump(tables)].map(commitText),
    statuses: RUN_STATUSES.map((status) => [
      status,
      tables.withStatus(status).map(({ id }) => id),
      tables.countWithStatus(status),
    ]),
    queued: ['s-1', 's-2'].map((session) => tables.nextQueued(session, '')?.id ?? null),
    requests: ['run-1', 'run-2'].map((id) => tables.runOfRequest(`run:${id}`, id)?.id ?? null),
    asks: ['run-1', 'run-2'].map((id) => tables.interactionsOf(id).map((one) => one.id)),
    pending: tables.pendingInteractions().map(({ id }) => id),
    counts: [tables.countPendingInteractions(), tables.journalRows, tables.journalBytes],
  };
}

const row = (first: number, entries: string, results: number) => ({
  first,
  count: 1,
  attempt: 1,
  entries,
  totals: totalsOf(results),
});

const SESSION = {
  id: 's-1',
  mode: 'serial' as const,
  owner: null,
  headRunId: 'run-1',
  latestCompletedRunId: null,
  lastOrder: 1,
  startedOrder: 1,
};
const MESSAGE = {
  runId: 'run-1',
  requestId: 'm',
  order: 1,
  sender: 'bob',
  message: 'hi',
  status: 'queued' as const,
  createdAt: 1,
};

const COMMITS: TablesChange[][] = [
  [
    { kind: 'run', run: aRun(1, { id: 'run-1', sessionId: 's-1', sessionOrder: 1 }) },
    { kind: 'journal', runId: 'run-1', row: row(1, '["\u00e9"]', 0) },
    { kind: 'session', session: SESSION },
  ],
  [
    { kind: 'run', run: aRun(2, { id: 'run-2', sessionId: 's-1', sessionOrder: 2, status: 'queued' }) },
    { kind: 'session', session: { ...SESSION, lastOrder: 2 } },
  ],
  [{ kind: 'header', runId: 'run-1', change: { status: 'running', attempt: 1, revision: 2 } }],
  [{ kind: 'journal', runId: 'run-1', row: row(2, '["b"]', 1) }],
  [
    { kind: 'interaction', interaction: anInteraction({ id: 'ask-1' }) },
    { kind: 'interaction', interaction: anInteraction({ id: 'ask-2', status: 'approved' }) },
    { kind: 'inbox', message: MESSAGE },
  ],
  [
    { kind: 'interaction', interaction: anInteraction({ id: 'ask-1', status: 'cancelled' }) },
    { kind: 'inbox', message: { ...MESSAGE, status: 'delivered' } },
    { kind: 'header', runId: 'run-1', change: { status: 'completed', totals: totalsOf(4) } },
    { kind: 'header', runId: 'run-2', change: { status: 'pending' } },
    { kind: 'journal', runId: 'run-2', row: row(1, '["c"]', 0) },
    { kind: 'session', session: { ...SESSION, headRunId: 'run-2', latestCompletedRunId: 'run-1' } },
  ],
];

describe('The tables of an image', () => {
  it('STO-1: are exactly what they were before a commit when it is taken out again', () => {
    const tables = new InMemoryTables();
    const pictures = [picture(tables)];
    const commits: TablesCommit[] = [];
    for (const changes of COMMITS) {
      commits.push(tables.commit(changes) as TablesCommit);
      pictures.push(picture(tables));
    }
    expect(new Set(pictures.map((one) => JSON.stringify(one))).size).toBe(COMMITS.length + 1);
    for (const commit of commits.reverse()) {
      pictures.pop();
      commit.undo();
      expect(picture(tables)).toEqual(pictures.at(-1));
    }
    expect(picture(tables)).toEqual(picture(new InMemoryTables()));
  });

  it('STO-7: are the same when they are built from their own dump', () => {
    const tables = new InMemoryTables();
    for (const changes of COMMITS) tables.commit(changes);
    const again = new InMemoryTables();
    for (const changes of dump(tables)) again.commit(changes);
    expect(picture(again)).toEqual(picture(tables));
  });

  it('write nothing for a commit without changes', () => {
    expect(new InMemoryTables().commit([])).toBeNull();
  });
});
