import assert from 'node:assert/strict';
import type { RecordedText, RunChange } from 'nestjs-agent-runs';
import {
  isSettled,
  anInteraction,
  appendNotes,
  ask,
  beat,
  change,
  claim,
  journal,
  loaded,
  note,
  notesOf,
  refusedWith,
  running,
  sameJson,
  submit,
  totalsOf,
  upTo,
} from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

/** I4: a transition reads under a lock, decides, and writes all of what was decided or nothing. */
export const transitionCases: readonly StoreCase[] = [
  storeCase(
    'RUN-1',
    'a change raises the revision, sets updatedAt by the clock of the store, and answers with the run after it',
    async ({ store, wait }) => {
      const { run } = await submit(store, { id: 'run-1' });
      await wait(5);
      let seenAt = 0;
      const done = await store.transition({
        runId: 'run-1',
        decide: ({ now, run: shown }) => {
          seenAt = now;
          return {
            result: shown.revision,
            run: { change: { recoveries: 4 }, entries: [note('x')], totals: totalsOf(2) },
          };
        },
      });
      assert.ok(done.outcome === 'done');
      assert.equal(done.result, 1, 'the result of the decider');
      const { updatedAt } = done.run;
      sameJson(
        done.run,
        { ...run, recoveries: 4, revision: 2, sequence: 2, totals: totalsOf(2), updatedAt },
        'the run after the change',
      );
      assert.ok(updatedAt > run.updatedAt && updatedAt >= seenAt && updatedAt < seenAt + 60_000, 'updatedAt is now');
      sameJson(await loaded(store, 'run-1'), done.run, 'the loaded run');
    },
  ),

  storeCase('STO-1', 'a decider that throws writes nothing, and its own error comes out', async ({ store }) => {
    const before = await running(store);
    const refusal = new RangeError('no');
    const outcome = await store
      .transition({
        runId: 'run-1',
        decide: () => {
          throw refusal;
        },
      })
      .catch((error: unknown) => error);
    assert.equal(outcome, refusal, 'the very error');
    sameJson(await loaded(store, 'run-1'), before, 'the run');
    await appendNotes(store, 'run-1', 1, ['still mine']);
  }),

  storeCase('STO-1', 'an empty decision writes nothing', async ({ store, wait }) => {
    const before = await running(store);
    await wait(3);
    const done = await store.transition({ runId: 'run-1', decide: () => ({ result: 'looked' }) });
    assert.ok(done.outcome === 'done');
    assert.equal(done.result, 'looked');
    sameJson(done.run, before, 'the answered run');
    sameJson(await loaded(store, 'run-1'), before, 'the loaded run');
  }),

  storeCase('STO-1', 'when one part of a decision is refused no other part is written', async ({ store }) => {
    await submit(store, { id: 'run-1', sessionId: 'session-1' });
    await submit(store, { id: 'run-2', sessionId: 'session-1' });
    await ask(store, [anInteraction({ id: 'used', status: 'used' })]);
    const [before, next, session] = [
      await loaded(store, 'run-1'),
      await loaded(store, 'run-2'),
      await store.session('session-1'),
    ];
    await refusedWith(
      'STORE_CONFLICT',
      store.transition({
        runId: 'run-1',
        session: true,
        decide: ({ nextInSession }) => {
          assert.equal(nextInSession?.id, 'run-2');
          return {
            result: null,
            run: { change: { status: 'completed' }, entries: [note('done')], totals: totalsOf(9) },
            session: { headRunId: 'run-2' },
            nextInSession: { change: { status: 'pending' }, entries: [note('next')] },
            inbox: [
              {
                runId: 'run-1',
                requestId: 'm-1',
                order: 1,
                sender: 'bob',
                message: 'hi',
                status: 'queued',
                createdAt: 1,
              },
            ],
            interactions: [anInteraction({ id: 'new' }), anInteraction({ id: 'used', status: 'approved' })],
          };
        },
      }),
      'replacing a used interaction',
    );
    sameJson(await loaded(store, 'run-1'), before, 'the run');
    sameJson(await loaded(store, 'run-2'), next, 'the next run');
    sameJson(await store.session('session-1'), session, 'the session');
    assert.deepEqual(
      (await store.interactions({ limit: 10 })).items.map(({ id }) => id),
      ['used'],
    );
    assert.deepEqual([...notesOf(await journal(store, 'run-1')), ...notesOf(await journal(store, 'run-2'))], []);
    await store.transition({
      runId: 'run-1',
      decide: ({ inbox }) => {
        assert.deepEqual(inbox, []);
        return { result: null };
      },
    });
  }),

  storeCase('RUN-1', 'changes at once are written one after the other, none over another', async ({ store }) => {
    await submit(store, { id: 'run-1' }, { entries: [] });
    await Promise.all(
      upTo(20).map(() =>
        store.transition({
          runId: 'run-1',
          decide: ({ run }) => ({
            result: null,
            run: { change: { recoveries: run.recoveries + 1 }, entries: [note(run.recoveries)] },
          }),
        }),
      ),
    );
    const run = await loaded(store, 'run-1');
    assert.equal(run.recoveries, 20, 'no change is lost');
    assert.equal(run.revision, 21);
    assert.deepEqual(
      notesOf(await journal(store, 'run-1')),
      upTo(20).map((n) => n - 1),
      'each saw the one before it',
    );
  }),

  storeCase('RUN-1', 'of many that settle a run at once one does', async ({ store }) => {
    for (const round of upTo(5)) {
      const id = `run-${round}`;
      await running(store, { id });
      const outcomes = await Promise.all(
        upTo(6).map((n) =>
          store.transition({
            runId: id,
            decide: ({ run, now }) => {
              if (isSettled(run.status)) return { result: null };
              const status = n % 2 === 0 ? ('completed' as const) : ('cancelled' as const);
              return { result: n, run: { change: { status, output: n, finishedAt: now }, entries: [note(n)] } };
            },
          }),
        ),
      );
      const winners = outcomes.flatMap((one) => (one.outcome === 'done' && one.result !== null ? [one.result] : []));
      assert.equal(winners.length, 1, 'one settles');
      const run = await loaded(store, id);
      assert.equal(run.output, winners[0]);
      assert.equal(run.status, (winners[0] ?? 0) % 2 === 0 ? 'completed' : 'cancelled');
      assert.deepEqual(notesOf(await journal(store, id)), winners);
    }
  }),

  storeCase(
    'STO-1',
    'a settled run takes no other status: not even from a decider that asks for it',
    async ({ store }) => {
      const attempts: [string, RunChange][] = [
        ['completed', { status: 'running', attempt: 2 }],
        ['completed', { status: 'completed', output: 'other' }],
        ['completed', { status: 'failed' }],
        ['completed', { status: 'pending' }],
        ['cancelled', { status: 'pending' }],
        ['cancelled', { status: 'completed' }],
        ['failed', { status: 'completed' }],
        ['timed_out', { status: 'retry_wait' }],
        ['blocked', { status: 'queued', restarts: 1 }],
      ];
      for (const [index, [from, to]] of attempts.entries()) {
        const id = `run-${index}`;
        await submit(store, { id, status: from as 'completed', output: 'first' });
        const before = await loaded(store, id);
        await refusedWith('ILLEGAL_TRANSITION', change(store, id, to, [note('x')]), `${from} to ${JSON.stringify(to)}`);
        sameJson(await loaded(store, id), before, 'the settled run');
        assert.deepEqual(notesOf(await journal(store, id)), []);
      }
    },
  ),

  storeCase(
    'RUN-1',
    'a settled run is left by a retry when it failed, and by a restart that counts itself',
    async ({ store }) => {
      await submit(store, { id: 'failed', status: 'failed' });
      assert.equal((await change(store, 'failed', { status: 'pending', error: null })).status, 'pending');
      await submit(store, { id: 'completed', status: 'completed', restarts: 2 });
      const restarted = await change(store, 'completed', { status: 'pending', restarts: 3, output: null });
      assert.deepEqual([restarted.status, restarted.restarts], ['pending', 3]);
    },
  ),

  storeCase('RUN-2', 'evidence is appended to a settled run without moving it', async ({ store }) => {
    await submit(store, { id: 'run-1', status: 'cancelled', attempt: 1, finishedAt: 5 });
    const before = await loaded(store, 'run-1');
    const after = await change(store, 'run-1', {}, [
      { type: 'operation.late_result', at: 6, key: 'r1.m1.t0', attempt: 1, output: 'late' },
    ]);
    assert.deepEqual([after.status, after.finishedAt, after.sequence], ['cancelled', 5, before.sequence + 1]);
    sameJson(after.totals, before.totals, 'usage and progress');
  }),

  storeCase('STO-1', 'totals change when they are given and stay when they are not', async ({ store, reopen }) => {
    await submit(store, { id: 'run-1' }, { totals: totalsOf(1) });
    await change(store, 'run-1', { recoveries: 1 }, [note('a')]);
    sameJson((await loaded(store, 'run-1')).totals, totalsOf(1), 'totals of an entry without totals');
    await store.transition({
      runId: 'run-1',
      decide: () => ({ result: null, run: { change: {}, entries: [note('b')], totals: totalsOf(2) } }),
    });
    await change(store, 'run-1', { recoveries: 2 });
    sameJson((await loaded(store, 'run-1')).totals, totalsOf(2), 'totals given with an entry');
    sameJson((await loaded(await reopen(), 'run-1')).totals, totalsOf(2), 'totals after reopening');
  }),

  storeCase('STO-9', 'every column that may change is stored, and set back to null', async ({ store, reopen }) => {
    const { run } = await submit(store, { id: 'run-1' });
    const changes: RunChange = {
      definitionHash: 'hash-2',
      historyRunId: 'run-0',
      historyCaptured: false,
      precedingRunId: 'run-0',
      status: 'needs_attention',
      waitingFor: ['approval', 'question', 'budget'],
      attention: { reason: 'limit', detail: 'too much' as RecordedText },
      attempt: 4,
      owner: 'worker-1',
      wake: { cause: 'retried', by: 'bob' },
      nextAttemptAt: 1_700_000_000_009,
      deadlineAt: 1_700_000_000_099,
      interruptRequest: { at: 1_700_000_000_999, by: 'bob', reason: 'wrong order', journaled: false },
      recoveries: 5,
      resultsAtClaim: 6,
      restarts: 7,
      budgetMaxTotalTokens: 8,
      frozen: { ...run.frozen, maxTurns: 1, maxDurationMs: 5, recovery: {} },
      output: ['a', { b: null }],
      error: { code: 'C', message: 'm' as RecordedText },
      activeMs: 9,
      claimedAt: 1_700_000_000_001,
      startedAt: 1_700_000_000_002,
      finishedAt: 1_700_000_000_003,
    };
    const full = await change(store, 'run-1', changes);
    sameJson(full, { ...run, ...changes, revision: 2, updatedAt: full.updatedAt }, 'the changed run');
    sameJson(await loaded(store, 'run-1'), full, 'the loaded run');
    const nothing: RunChange = {
      historyRunId: null,
      precedingRunId: null,
      waitingFor: [],
      attention: null,
      owner: null,
      wake: null,
      nextAttemptAt: null,
      deadlineAt: null,
      interruptRequest: null,
      budgetMaxTotalTokens: null,
      output: null,
      error: null,
      claimedAt: null,
      startedAt: null,
      finishedAt: null,
    };
    const empty = await change(store, 'run-1', nothing);
    sameJson(empty, { ...full, ...nothing, revision: 3, updatedAt: empty.updatedAt }, 'the emptied run');
    sameJson(await loaded(await reopen(), 'run-1'), empty, 'the run after reopening');
  }),

  storeCase('STO-9', 'a change touches its own run only', async ({ store }) => {
    for (const id of ['run-1', 'run-2']) await submit(store, { id });
    const other = await loaded(store, 'run-2');
    await change(store, 'run-1', { status: 'cancelled' }, [note('x')]);
    sameJson(await loaded(store, 'run-2'), other, 'the other run');
  }),

  storeCase('STO-9', 'a row that nobody holds is not busy', async ({ store }) => {
    await submit(store, { id: 'run-1' });
    const done = await store.transition({ runId: 'run-1', skipLocked: true, decide: () => ({ result: 1 }) });
    assert.equal(done.outcome, 'done');
  }),

  storeCase('OWN-1', 'of many workers that claim a run at once one gets it', async ({ store }) => {
    for (const round of upTo(5)) {
      const id = `run-${round}`;
      await submit(store, { id });
      const workers = upTo(10).map((n) => `worker-${n}`);
      await Promise.all(workers.map((worker) => beat(store, worker)));
      const attempts = await Promise.all(workers.map((worker) => claim(store, id, worker)));
      const won = workers.filter((_, index) => attempts[index] !== null);
      assert.equal(won.length, 1, 'one wins');
      const run = await loaded(store, id);
      assert.deepEqual([run.status, run.attempt, run.owner], ['running', 1, won[0]]);
      const claims = (await journal(store, id)).filter(({ type }) => type === 'run.started');
      assert.equal(claims.length, 1, 'one claim is on record');
    }
  }),
];
