import assert from 'node:assert/strict';
import {
  STATUSES,
  anInteraction,
  appendNotes,
  ask,
  beat,
  change,
  expire,
  running,
  sameJson,
  submit,
  totalsOf,
} from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

/** What operators are told is counted from what is stored. */
export const metricsCases: readonly StoreCase[] = [
  storeCase('OPS-2', 'an empty store counts nothing', async ({ store }) => {
    sameJson(
      await store.metrics(),
      {
        runsByStatus: Object.fromEntries(STATUSES.map((status) => [status, 0])),
        oldestClaimableMs: null,
        openInteractions: 0,
        operations: 0,
        journalRows: 0,
        journalBytes: 0,
        offenders: 0,
      },
      'the metrics',
    );
  }),

  storeCase(
    'OPS-2',
    'runs are counted by status, asks while they are open, operations by their results',
    async ({ store, reopen }) => {
      for (const [n, status] of STATUSES.entries()) {
        await submit(store, { id: `run-${n}`, status, waitingFor: ['budget'] }, { totals: totalsOf(n) });
      }
      await submit(store, { id: 'one-more' });
      await ask(
        store,
        [anInteraction({ id: 'a', runId: 'one-more' }), anInteraction({ id: 'b', runId: 'one-more' })],
        'one-more',
      );
      await ask(store, [anInteraction({ id: 'b', runId: 'one-more', status: 'cancelled' })], 'one-more');
      const { runsByStatus, openInteractions, operations } = await (await reopen()).metrics();
      sameJson(
        runsByStatus,
        Object.fromEntries(STATUSES.map((status) => [status, status === 'pending' ? 2 : 1])),
        'runs by status',
      );
      assert.equal(openInteractions, 1);
      assert.equal(
        operations,
        STATUSES.reduce((sum, _, n) => sum + n, 0),
      );
    },
  ),

  storeCase('OPS-2', 'rows and bytes of the journal grow with what is appended', async ({ store }) => {
    await running(store);
    const before = await store.metrics();
    assert.ok(before.journalRows > 0 && before.journalBytes > 0);
    await appendNotes(store, 'run-1', 1, ['\u00e9'.repeat(5_000), 'b'], totalsOf(1));
    await appendNotes(store, 'run-1', 1, ['c'], totalsOf(2));
    const after = await store.metrics();
    assert.equal(after.journalRows - before.journalRows, 2, 'one row a commit');
    const grown = after.journalBytes - before.journalBytes;
    assert.ok(grown > 10_000 && grown < 11_000, `10 kB of text are ${grown} bytes`);
    assert.equal(after.operations - before.operations, 2);
  }),

  storeCase('OPS-2', 'the oldest claimable run is as old as its wait', async ({ store, wait }) => {
    const { now } = await beat(store, 'worker-1');
    await submit(store, { id: 'queued', status: 'queued', createdAt: now - 900_000, updatedAt: now - 900_000 });
    await submit(store, { id: 'later', status: 'retry_wait', nextAttemptAt: now + 900_000 });
    assert.equal((await store.metrics()).oldestClaimableMs, null);
    await submit(store, { id: 'run-1', createdAt: now, updatedAt: now });
    await submit(store, { id: 'run-2', status: 'retry_wait', nextAttemptAt: now - 100_000 });
    await wait(5);
    const oldest = (await store.metrics()).oldestClaimableMs ?? 0;
    assert.ok(oldest > 100_000 && oldest < 200_000, `a run due for 100 s is ${oldest} ms old`);
    await change(store, 'run-2', { status: 'cancelled' });
    assert.ok(((await store.metrics()).oldestClaimableMs ?? 0) < 100_000);
  }),

  storeCase(
    'OPS-2',
    'offenders are runs without a live owner and runs that wait for what is answered',
    async (subject) => {
      const { store } = subject;
      await running(store, { id: 'fine' }, 'worker-1');
      await running(store, { id: 'lost' }, 'worker-2');
      await submit(store, { id: 'open', status: 'waiting', waitingFor: ['approval'] });
      await ask(store, [anInteraction({ runId: 'open' })], 'open');
      assert.equal((await store.metrics()).offenders, 0);
      await submit(store, { id: 'answered', status: 'waiting', waitingFor: ['approval'] });
      assert.equal((await store.metrics()).offenders, 1);
      await expire(subject, 'worker-2');
      assert.equal((await store.metrics()).offenders, 2);
    },
  ),
];
