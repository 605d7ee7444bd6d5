import assert from 'node:assert/strict';
import type { RecordedText } from 'nestjs-agent-runs';
import { brandedError, aRun, journal, loaded, note, notesOf, sameJson, submit, totalsOf, upTo } from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

/** How a run comes to be, once. */
export const submissionCases: readonly StoreCase[] = [
  storeCase('SUB-1', 'a run and its first entries are there together, numbered from 1', async ({ store }) => {
    const { run, created } = await submit(
      store,
      { id: 'run-1', revision: 7, sequence: 99, totals: totalsOf(5), metadata: { tier: 'gold', n: 5, ok: true } },
      { entries: [{ type: 'run.submitted', at: 5, messages: [] }, note('second')], totals: totalsOf(2) },
    );
    assert.equal(created, true);
    assert.equal(run.revision, 1, 'the store sets the revision');
    assert.equal(run.sequence, 2, 'the store sets the sequence from the entries');
    sameJson(run.totals, totalsOf(2), 'totals are those given with the entries');
    const read = await store.readJournal('run-1', 0, 10);
    assert.deepEqual(
      read?.entries.map(({ sequence }) => sequence),
      [1, 2],
    );
    sameJson(read?.entries[0], { type: 'run.submitted', at: 5, messages: [], sequence: 1 }, 'the first entry');
    sameJson(read?.run, run, 'the run read with the journal');
    const found = await store.load('run-1');
    sameJson(found?.run, run, 'the loaded run');
    assert.equal(found?.lease, null);
  }),

  storeCase('SUB-1', 'every field of a new run is stored and given back', async ({ store, reopen }) => {
    const { now } = await store.due({ offers: [], contractVersion: 1, limit: 0, takeovers: false, held: [] });
    const full = aRun(now, {
      id: 'run-full',
      sessionId: null,
      historyRunId: 'run-0',
      precedingRunId: 'run-0',
      requestScope: 'agent:support',
      requestId: 'request-1',
      status: 'waiting',
      waitingFor: ['approval', 'budget'],
      attention: {
        reason: 'uncertain_outcome',
        operationKey: 'r1.m1.t0',
        operations: ['r1.m1.t0'],
        detail: 'look' as RecordedText,
      },
      attempt: 3,
      owner: 'worker-9',
      wake: { cause: 'takeover', by: 'bob', reason: 'gone', previousOwner: 'worker-8', leaseRemainingMs: 12 },
      nextAttemptAt: now + 1,
      deadlineAt: now + 600_009,
      interruptRequest: { at: now - 10, by: 'bob', reason: 'too late', journaled: true },
      recoveries: 2,
      resultsAtClaim: 4,
      restarts: 1,
      budgetMaxTotalTokens: 5_000_000_000,
      output: { text: 'done' },
      error: { code: 'X', message: 'y' as RecordedText },
      metadata: { a: 'b', n: 1.5, f: false },
      activeMs: 1_234,
      claimedAt: now - 999,
      startedAt: now - 1_001,
      finishedAt: now - 1,
      createdAt: now - 1_009,
      updatedAt: now - 99,
    });
    const { run } = await submit(store, full, { totals: totalsOf(3) });
    const expected = { ...full, revision: 1, sequence: 1, totals: totalsOf(3) };
    sameJson(run, expected, 'the created run');
    sameJson(await loaded(await reopen(), 'run-full'), expected, 'the loaded run');
  }),

  storeCase(
    'SUB-1',
    'the decider of a first submission sees the clock of the store and nothing else',
    async ({ store }) => {
      const seen: unknown[] = [];
      const { now } = await store.heartbeat({ workerId: 'w', leaseMs: 1_000, startedAt: 1, offers: [] });
      await store
        .create({
          runId: 'run-1',
          sessionId: 'session-1',
          requestScope: 'session:session-1',
          requestId: 'request-1',
          decide: (situation) => {
            seen.push(situation);
            throw new Error('seen');
          },
        })
        .then(
          () => assert.fail('a refusal is thrown'),
          (error: unknown) => assert.equal((error as Error).message, 'seen'),
        );
      const situation = seen[0] as { now: number };
      sameJson(situation, { now: situation.now, session: null, sameRequest: null, sameId: null }, 'the situation');
      assert.ok(situation.now >= now && situation.now < now + 60_000, 'now is epoch ms by the clock of the store');
    },
  ),

  storeCase('SUB-1', 'a refused submission throws the given error and writes nothing', async ({ store }) => {
    const refusal = new Error('not today');
    let visible = 0;
    const outcome = await store
      .create({
        runId: 'run-1',
        sessionId: 'session-1',
        requestScope: 'session:session-1',
        requestId: 'request-1',
        decide: () => {
          throw refusal;
        },
        onVisible: () => (visible += 1),
      })
      .catch((error: unknown) => error);
    assert.equal(outcome, refusal, 'the very error');
    assert.equal(visible, 0);
    assert.equal(await store.load('run-1'), null);
    assert.equal(await store.readJournal('run-1', 0, 10), null);
    assert.equal(await store.session('session-1'), null);
    assert.equal(await store.countPending(10), 0);
    const { created } = await submit(store, { id: 'run-1', requestScope: 'session:session-1', requestId: 'request-1' });
    assert.equal(created, true, 'neither id nor request is taken');
  }),

  storeCase('SUB-1', 'a decider that throws writes nothing', async ({ store }) => {
    const failure = new TypeError('a bug');
    const request = { runId: 'run-1', sessionId: null, requestScope: 's', requestId: 'r' };
    const outcome = await store
      .create({
        ...request,
        decide: () => {
          throw failure;
        },
      })
      .catch((error: unknown) => error);
    assert.equal(outcome, failure, 'the very error');
    assert.equal(await store.load('run-1'), null);
  }),

  storeCase('SUB-1', 'onVisible is called once, when the run can be read', async ({ store }) => {
    const seen: Promise<unknown>[] = [];
    await submit(store, { id: 'run-1' }, { onVisible: () => seen.push(store.load('run-1')) });
    assert.equal(seen.length, 1);
    assert.ok(await seen[0], 'the run can be loaded from inside the callback');
  }),

  storeCase('SUB-2', 'the same request is shown its run, and nothing is written for it', async ({ store }) => {
    const request = { requestScope: 'session:s', requestId: 'request-1' };
    const first = await submit(store, { id: 'run-1', ...request }, { entries: [note('one')] });
    const again = await submit(store, { id: 'run-2', ...request }, { entries: [note('two')] });
    assert.equal(again.created, false);
    sameJson(again.run, first.run, 'the original run');
    assert.equal(await store.load('run-2'), null);
    assert.deepEqual(notesOf(await journal(store, 'run-1')), ['one']);
  }),

  storeCase('SUB-2', 'a request id is unique within its scope only', async ({ store }) => {
    for (const [id, requestScope] of [
      ['run-1', 'session:a'],
      ['run-2', 'session:b'],
      ['run-3', 'agent:a'],
    ] as const) {
      const { created } = await submit(store, { id, requestScope, requestId: 'request-1' });
      assert.equal(created, true, requestScope);
    }
  }),

  storeCase('SUB-2', 'of many equal requests at once one creates its run, and all get that one', async ({ store }) => {
    const request = { requestScope: 'agent:support', requestId: 'request-1' };
    const visible: string[] = [];
    const results = await Promise.all(
      upTo(10).map((n) => submit(store, { id: `run-${n}`, ...request }, { onVisible: () => visible.push(`run-${n}`) })),
    );
    const made = results.filter(({ created }) => created);
    assert.equal(made.length, 1, 'one created');
    assert.deepEqual([...new Set(results.map(({ run }) => run.id))], [made[0]?.run.id], 'all return it');
    assert.deepEqual(visible, [made[0]?.run.id]);
    assert.equal((await store.list({ limit: 100 })).items.length, 1);
  }),

  storeCase('STO-1', 'of many runs with one id at once one is created, the others see it', async ({ store }) => {
    const results = await Promise.allSettled(
      upTo(8).map((n) =>
        submit(store, { id: 'run-1', requestScope: `scope-${n}`, requestId: 'r' }, { entries: [note(n)] }),
      ),
    );
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1, 'one created');
    for (const result of results) {
      if (result.status === 'rejected') assert.equal((result.reason as Error).message, 'run-1 exists');
    }
    const winner = (await loaded(store, 'run-1')).requestScope;
    assert.deepEqual(notesOf(await journal(store, 'run-1')), [Number(winner.slice('scope-'.length))]);
  }),

  storeCase(
    'STO-1',
    'a decider that inserts over what is there is refused, and the first run stays',
    async ({ store }) => {
      const { run } = await submit(store, {
        id: 'run-1',
        requestScope: 's',
        requestId: 'r',
        metadata: { first: true },
      });
      for (const second of [
        { id: 'run-1', requestScope: 's2', requestId: 'r2' },
        { id: 'run-2', requestScope: 's', requestId: 'r' },
      ]) {
        const outcome = await store
          .create({
            runId: second.id,
            sessionId: null,
            requestScope: second.requestScope,
            requestId: second.requestId,
            decide: ({ now }) => ({
              do: 'insert',
              run: aRun(now, second),
              entries: [note('second')],
              totals: totalsOf(0),
              session: null,
            }),
          })
          .catch((error: unknown) => error);
        assert.ok(brandedError(outcome)?.family === 'store', 'refused with an error of the store');
      }
      sameJson(await loaded(store, 'run-1'), run, 'the first run');
      assert.equal(await store.load('run-2'), null);
      assert.deepEqual(notesOf(await journal(store, 'run-1')), []);
    },
  ),

  storeCase('STO-5', 'ids and request ids that differ in anything are different', async ({ store }) => {
    const long = 'a'.repeat(127);
    const keys = [
      'User-1',
      'user-1',
      'USER-1',
      'user-1.',
      'user-1_',
      'user-1:',
      'K',
      'k',
      'I',
      'i',
      '0',
      '00',
      'null',
      'undefined',
    ];
    const ids = [...keys, `${long}a`, `${long}b`, `${long}A`];
    for (const id of ids) {
      const { created } = await submit(store, { id, requestScope: `session:${id}`, requestId: 'r', metadata: { id } });
      assert.equal(created, true, `run ${id}`);
      const inOneScope = await submit(store, {
        id: `${id.slice(0, 100)}-${ids.indexOf(id)}`,
        requestScope: 'one',
        requestId: id,
      });
      assert.equal(inOneScope.created, true, `request ${id}`);
    }
    for (const id of ids) assert.equal((await loaded(store, id)).metadata['id'], id);
    assert.equal(await store.load('USER-1.'), null);
  }),

  storeCase('STO-9', 'what does not exist is told apart from what is empty', async ({ store }) => {
    assert.equal(await store.load('nothing'), null);
    assert.equal(await store.readJournal('nothing', 0, 10), null);
    assert.equal(await store.session('nothing'), null);
    const moved = await store.transition({ runId: 'nothing', decide: () => assert.fail('nothing to decide about') });
    assert.deepEqual(moved, { outcome: 'not_found' });
    sameJson(await store.list({ limit: 10 }), { items: [] }, 'an empty list');
    sameJson(await store.interactions({ limit: 10 }), { items: [] }, 'no interactions');
    await submit(store, { id: 'run-1' }, { entries: [] });
    assert.deepEqual((await store.readJournal('run-1', 0, 10))?.entries, []);
    assert.equal((await loaded(store, 'run-1')).sequence, 0);
  }),

  storeCase('SUB-7', 'pending and queued runs are counted, up to a bound', async ({ store }) => {
    for (const [id, status] of [
      ['a', 'pending'],
      ['b', 'queued'],
      ['c', 'pending'],
      ['d', 'waiting'],
      ['e', 'failed'],
    ] as const) {
      await submit(store, { id, status });
    }
    assert.equal(await store.countPending(100), 3);
    assert.equal(await store.countPending(2), 2);
    assert.equal(await store.countPending(0), 0);
  }),

  storeCase(
    'STO-9',
    'opening and closing again is allowed, and what was committed is there afterwards',
    async ({ store, reopen }) => {
      await store.open();
      const { run } = await submit(store, { id: 'run-1', sessionId: 'session-1' }, { entries: [note('kept')] });
      const session = await store.session('session-1');
      const next = await reopen();
      sameJson(await loaded(next, 'run-1'), run, 'the run');
      sameJson(await next.session('session-1'), session, 'the session');
      assert.deepEqual(notesOf(await journal(next, 'run-1')), ['kept']);
      const { created } = await submit(next, { id: 'run-2', requestScope: run.requestScope, requestId: run.requestId });
      assert.equal(created, false, 'the request is still known');
      await next.close();
      await next.close();
    },
  ),
];
