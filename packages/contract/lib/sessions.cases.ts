import assert from 'node:assert/strict';
import type { SessionRecord } from 'nestjs-agent-runs';
import { isSettled, change, journal, loaded, sameJson, settleInSession, submit, upTo } from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

const SESSION = 'session-1';

/** I6: one run of a session at a time, first in first out, in the order the store gave. */
export const sessionCases: readonly StoreCase[] = [
  storeCase(
    'SUB-4',
    'the first run of a session makes its row and holds it, the next ones queue',
    async ({ store, reopen }) => {
      const first = await submit(store, { id: 'run-1', sessionId: SESSION });
      const second = await submit(store, { id: 'run-2', sessionId: SESSION });
      assert.deepEqual([first.run.status, first.run.sessionOrder], ['pending', 1]);
      assert.deepEqual([second.run.status, second.run.sessionOrder], ['queued', 2]);
      sameJson(
        await (await reopen()).session(SESSION),
        {
          id: SESSION,
          mode: 'serial',
          owner: null,
          headRunId: 'run-1',
          latestCompletedRunId: null,
          lastOrder: 2,
          startedOrder: 1,
        },
        'the row of the session',
      );
    },
  ),

  storeCase('SUB-4', 'the owner that the first run names stays with its session', async ({ store, reopen }) => {
    // What databases refuse, fold or cut: NUL, a lone surrogate, a blank at the end, more than an index holds.
    const owner = `tenant \u0000 \ud800 "${'x'.repeat(300)} `;
    await submit(store, { id: 'run-1', sessionId: SESSION }, { sessionOwner: owner });
    await submit(store, { id: 'run-2', sessionId: SESSION });
    await settleInSession(store, 'run-1', 'completed');
    assert.equal((await (await reopen()).session(SESSION))?.owner, owner);
  }),

  storeCase(
    'SUB-4',
    'of submissions at once that name an owner each, all are shown the first one',
    async ({ store }) => {
      const shown = await Promise.all(
        upTo(10).map(async (n) => {
          const owners: (string | null)[] = [];
          const look = (session: SessionRecord | null): void => void owners.push(session?.owner ?? null);
          await submit(store, { id: `run-${n}`, sessionId: SESSION }, { sessionOwner: `owner-${n}`, look });
          // The last look is the one that was written on: earlier ones lost a race.
          return { n, owner: owners.at(-1) };
        }),
      );
      const first = shown.filter(({ owner }) => owner === null);
      assert.equal(first.length, 1, 'one was shown no session');
      const owner = `owner-${first[0]?.n}`;
      for (const other of shown) if (other !== first[0]) assert.equal(other.owner, owner);
      assert.equal((await store.session(SESSION))?.owner, owner);
    },
  ),

  storeCase('SUB-4', 'submissions at once get the orders 1, 2, 3 …, and one of them the session', async ({ store }) => {
    const count = 10;
    const made = await Promise.all(upTo(count).map((n) => submit(store, { id: `run-${n}`, sessionId: SESSION })));
    const byOrder = made.map(({ run }) => run).sort((a, b) => (a.sessionOrder ?? 0) - (b.sessionOrder ?? 0));
    assert.deepEqual(
      byOrder.map(({ sessionOrder }) => sessionOrder),
      upTo(count),
    );
    assert.deepEqual(
      byOrder.map(({ status }) => status),
      ['pending', ...upTo(count - 1).map(() => 'queued')],
    );
    const session = await store.session(SESSION);
    assert.deepEqual([session?.headRunId, session?.lastOrder], [byOrder[0]?.id, count]);
  }),

  storeCase(
    'SUB-4',
    'a decider is shown the session and its next run only when it asks for them',
    async ({ store }) => {
      await submit(store, { id: 'run-1', sessionId: SESSION });
      await submit(store, { id: 'run-2', sessionId: SESSION });
      const seen: unknown[] = [];
      for (const session of [undefined, false, true]) {
        await store.transition({
          runId: 'run-1',
          ...(session === undefined ? {} : { session }),
          decide: (locked) => ({ result: seen.push([locked.session?.id ?? null, locked.nextInSession?.id ?? null]) }),
        });
      }
      assert.deepEqual(seen, [
        [null, null],
        [null, null],
        [SESSION, 'run-2'],
      ]);
      await submit(store, { id: 'alone' });
      await store.transition({
        runId: 'alone',
        session: true,
        decide: (locked) => {
          assert.deepEqual([locked.session, locked.nextInSession], [null, null]);
          return { result: null };
        },
      });
    },
  ),

  storeCase(
    'SUB-4',
    'the next run is the queued one with the lowest order, never the run itself',
    async ({ store }) => {
      const createdAt = 1_700_000_000_000;
      // Ids and times against the order, which alone counts.
      for (const [n, id] of ['run-z', 'run-y', 'run-x', 'run-w'].entries()) {
        await submit(store, { id, sessionId: SESSION, createdAt: createdAt - n });
      }
      await submit(store, { id: 'run-a', sessionId: 'session-2', status: 'queued', createdAt: 1 });
      const nextOf = async (runId: string) => {
        const shown = await store.transition({
          runId,
          session: true,
          decide: ({ nextInSession }) => ({ result: nextInSession }),
        });
        return shown.outcome === 'done' ? shown.result : null;
      };
      const next = await nextOf('run-z');
      sameJson(next, await loaded(store, 'run-y'), 'the next run');
      assert.equal((await nextOf('run-y'))?.id, 'run-x', 'not the run itself');
      await change(store, 'run-y', { status: 'cancelled' });
      assert.equal((await nextOf('run-z'))?.id, 'run-x', 'not one that left the queue');
      await change(store, 'run-x', { status: 'cancelled' });
      await change(store, 'run-w', { status: 'cancelled' });
      assert.equal(await nextOf('run-z'), null);
    },
  ),

  storeCase('SUB-5', 'a run that completes hands its session on in the same transaction', async ({ store, reopen }) => {
    await submit(store, { id: 'run-1', sessionId: SESSION });
    const { run: queued } = await submit(store, { id: 'run-2', sessionId: SESSION });
    await settleInSession(store, 'run-1', 'completed');
    const after = await reopen();
    const next = await loaded(after, 'run-2');
    assert.deepEqual(
      [next.status, next.historyRunId, next.historyCaptured, next.revision, next.sequence],
      ['pending', 'run-1', true, queued.revision + 1, queued.sequence + 1],
    );
    assert.equal((await journal(after, 'run-2')).at(-1)?.type, 'run.dequeued');
    assert.ok(next.updatedAt >= queued.updatedAt);
    const session = await after.session(SESSION);
    assert.deepEqual(
      [session?.headRunId, session?.latestCompletedRunId, session?.startedOrder, session?.lastOrder],
      ['run-2', 'run-1', 2, 2],
    );
  }),

  storeCase('SUB-4', 'a failed or cancelled run frees its session and adds no history', async ({ store }) => {
    for (const n of upTo(3)) await submit(store, { id: `run-${n}`, sessionId: SESSION });
    await settleInSession(store, 'run-1', 'failed');
    await settleInSession(store, 'run-2', 'cancelled');
    const last = await loaded(store, 'run-3');
    assert.deepEqual([last.status, last.historyRunId], ['pending', null]);
    await settleInSession(store, 'run-3', 'completed');
    const session = await store.session(SESSION);
    assert.deepEqual([session?.headRunId, session?.latestCompletedRunId], [null, 'run-3']);
    const { run } = await submit(store, { id: 'run-4', sessionId: SESSION });
    assert.deepEqual([run.status, run.sessionOrder, run.historyRunId], ['pending', 4, 'run-3']);
  }),

  storeCase('SUB-4', 'a settle and a submission at once leave no run queued behind nobody', async ({ store }) => {
    for (const round of upTo(8)) {
      const [first, next, sessionId] = [`first-${round}`, `next-${round}`, `session-${round}`];
      await submit(store, { id: first, sessionId });
      await Promise.all([settleInSession(store, first, 'completed'), submit(store, { id: next, sessionId })]);
      const run = await loaded(store, next);
      assert.deepEqual([run.status, run.historyRunId], ['pending', first]);
      assert.equal((await store.session(sessionId))?.headRunId, next);
    }
  }),

  storeCase(
    'SUB-4',
    'a settle and a cancel of the next run at once hand the session to the one behind',
    async ({ store }) => {
      for (const round of upTo(8)) {
        const ids = upTo(3).map((n) => `run-${round}-${n}`);
        const [first = '', second = '', third = ''] = ids;
        for (const id of ids) await submit(store, { id, sessionId: `session-${round}` });
        const both = [
          () => settleInSession(store, first, 'completed'),
          () => settleInSession(store, second, 'cancelled'),
        ];
        await Promise.all((round % 2 ? both : both.reverse()).map((settle) => settle()));
        assert.deepEqual(
          [(await loaded(store, second)).status, (await loaded(store, third)).status],
          ['cancelled', 'pending'],
        );
        assert.equal((await store.session(`session-${round}`))?.headRunId, third);
      }
    },
  ),

  storeCase(
    'SUB-4',
    'settles, cancels and submissions at once lose no run and keep the order',
    async ({ store, wait }) => {
      const ids = upTo(8).map((n) => `run-${n}`);
      for (const id of ids) await submit(store, { id, sessionId: SESSION });
      const completeWhenHead = async (id: string): Promise<void> => {
        for (const _ of upTo(5_000)) {
          const { status } = await loaded(store, id);
          if (isSettled(status)) return;
          if (status === 'pending') await settleInSession(store, id, 'completed');
          else await wait(1);
        }
        assert.fail(`${id} never came to the head of its session`);
      };
      await Promise.all([
        ...ids.filter((id) => id !== 'run-4' && id !== 'run-8').map(completeWhenHead),
        settleInSession(store, 'run-4', 'cancelled'),
        settleInSession(store, 'run-8', 'cancelled'),
        submit(store, { id: 'run-9', sessionId: SESSION }),
      ]);
      await completeWhenHead('run-9');
      const histories = await Promise.all([...ids, 'run-9'].map(async (id) => (await loaded(store, id)).historyRunId));
      assert.deepEqual(
        histories.filter((_, index) => index !== 3 && index !== 7),
        [null, 'run-1', 'run-2', 'run-3', 'run-5', 'run-6', 'run-7'],
        'each run saw the completed one before it',
      );
      const session = await store.session(SESSION);
      assert.deepEqual([session?.headRunId, session?.latestCompletedRunId, session?.lastOrder], [null, 'run-9', 9]);
    },
  ),

  storeCase('STO-5', 'sessions that differ in case only are different', async ({ store }) => {
    for (const sessionId of ['User-1', 'user-1', 'USER-1']) {
      const { run } = await submit(store, { id: `run-${sessionId}`, sessionId });
      assert.deepEqual([run.status, run.sessionOrder], ['pending', 1], sessionId);
    }
    assert.equal((await store.session('user-1'))?.headRunId, 'run-user-1');
  }),
];
