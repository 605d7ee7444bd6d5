import assert from 'node:assert/strict';
import type { DueQuery, Offer, OverdueQuery } from 'nestjs-agent-runs';
import {
  OFFER,
  anInteraction,
  ask,
  beat,
  change,
  claim,
  expire,
  loaded,
  running,
  sameJson,
  submit,
  upTo,
} from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

const DUE: DueQuery = { offers: [OFFER], contractVersion: 1, limit: 100, takeovers: true, held: [] };
const OVERDUE: OverdueQuery = { liveOffers: [OFFER], contractVersion: 1, unofferedAfterMs: 0, limit: 100 };

/** I11, I12: who may execute a run is judged by the clock of the store and the row of its worker. */
export const ownershipCases: readonly StoreCase[] = [
  storeCase(
    'OWN-3',
    'a heartbeat answers by the clock of the store, and the worker lives until its lease ends',
    async (subject) => {
      const { store } = subject;
      const offers: Offer[] = [OFFER, { agent: 'other', version: '2', hash: null }];
      const first = await beat(store, 'worker-1', 60_000, offers);
      assert.equal(first.leaseExpiresAt, first.now + 60_000);
      assert.ok(first.now > 1e12 && first.now < 1e13, 'epoch ms');
      await beat(store, 'worker-2');
      const second = await beat(store, 'worker-1', 90_000, offers);
      assert.ok(second.now >= first.now && second.leaseExpiresAt === second.now + 90_000);
      const workers = await store.liveWorkers();
      assert.deepEqual(workers.map(({ id }) => id).sort(), ['worker-1', 'worker-2']);
      sameJson(
        workers.find(({ id }) => id === 'worker-1'),
        {
          id: 'worker-1',
          startedAt: 1_700_000_000_000,
          heartbeatAt: second.now,
          leaseExpiresAt: second.leaseExpiresAt,
          offers,
        },
        'the row of the worker',
      );
      await expire(subject, 'worker-2');
      assert.deepEqual(
        (await store.liveWorkers()).map(({ id }) => id),
        ['worker-1'],
      );
      await store.retireWorker('worker-1');
      await store.retireWorker('never-was');
      assert.deepEqual(await store.liveWorkers(), []);
      await beat(store, 'worker-1');
      assert.equal((await store.liveWorkers()).length, 1, 'a retired worker may come back');
    },
  ),

  storeCase('OWN-3', 'rows of workers that died long ago are cleared when a worker begins', async ({ store }) => {
    await running(store, { id: 'run-1' }, 'worker-dead');
    await beat(store, 'worker-late', -60_000);
    await beat(store, 'worker-dead', -3_700_000);
    const rowOf = async (): Promise<number | null | undefined> => (await store.load('run-1'))?.lease?.heartbeatAt;
    assert.ok(await rowOf(), 'the row is there until then');
    await beat(store, 'worker-new');
    assert.equal(await rowOf(), null, 'the row is gone, and its run as good as expired');
    assert.deepEqual((await store.overdue(OVERDUE)).expired, ['run-1']);
    await beat(store, 'worker-late');
    assert.deepEqual((await store.liveWorkers()).map(({ id }) => id).sort(), ['worker-late', 'worker-new']);
  }),

  storeCase('OWN-4', 'a running run shows the lease of its owner, any other run shows none', async (subject) => {
    const { store } = subject;
    await submit(store, { id: 'run-1' });
    assert.equal((await store.load('run-1'))?.lease, null);
    const { now, leaseExpiresAt } = await beat(store, 'worker-1');
    await claim(store, 'run-1', 'worker-1');
    const lease = { owner: 'worker-1', heartbeatAt: now, expiresAt: leaseExpiresAt };
    sameJson((await store.load('run-1'))?.lease, lease, 'the lease');
    await store.transition({
      runId: 'run-1',
      decide: (locked) => {
        sameJson(locked.lease, lease, 'the lease under the lock');
        assert.ok(locked.now >= now && locked.now < leaseExpiresAt);
        return { result: null };
      },
    });
    await expire(subject, 'worker-1');
    await store.transition({
      runId: 'run-1',
      decide: (locked) => {
        assert.ok((locked.lease?.expiresAt ?? 0) <= locked.now, 'an expired lease is seen as such');
        return { result: null };
      },
    });
    await store.retireWorker('worker-1');
    sameJson(
      (await store.load('run-1'))?.lease,
      { owner: 'worker-1', heartbeatAt: null, expiresAt: null },
      'the lease without a worker row',
    );
    await change(store, 'run-1', { status: 'waiting' });
    assert.equal((await store.load('run-1'))?.lease, null);
  }),

  storeCase('OWN-1', 'pending runs are claimable, oldest first, as many as are wanted', async ({ store }) => {
    const at = 1_700_000_000_000;
    for (const n of [3, 1, 4, 2]) await submit(store, { id: `run-${n}`, createdAt: at + n, updatedAt: at + n });
    const claimable = async (query: Partial<DueQuery>) =>
      (await store.due({ ...DUE, ...query })).claimable.map(({ id }) => id);
    assert.deepEqual(await claimable({}), ['run-1', 'run-2', 'run-3', 'run-4']);
    assert.deepEqual(await claimable({ limit: 2 }), ['run-1', 'run-2']);
    assert.deepEqual(await claimable({ limit: 0 }), []);
    const answer = await store.due(DUE);
    assert.equal(answer.claimable[0]?.status, 'pending');
    assert.ok(answer.now > at);
  }),

  storeCase('OWN-1', 'runs in any other status are not claimable', async ({ store }) => {
    for (const status of [
      'queued',
      'waiting',
      'interrupted',
      'needs_attention',
      'completed',
      'failed',
      'cancelled',
      'blocked',
      'timed_out',
    ] as const) {
      await submit(store, { id: `run-${status}`, status });
    }
    assert.deepEqual((await store.due(DUE)).claimable, []);
  }),

  storeCase('OWN-6', 'a worker is offered only what it can execute', async ({ store }) => {
    await submit(store, { id: 'plain' });
    await submit(store, { id: 'other-hash', definitionHash: 'hash-2' });
    await submit(store, { id: 'other-version', version: '2' });
    await submit(store, { id: 'other-agent', agent: 'billing' });
    await submit(store, { id: 'other-case', agent: 'Support' });
    await submit(store, { id: 'newer', contractVersion: 2 });
    const claimable = async (offers: Offer[], contractVersion = 1) =>
      (await store.due({ ...DUE, offers, contractVersion })).claimable.map(({ id }) => id).sort();
    assert.deepEqual(await claimable([]), [], 'no offers, no runs');
    assert.deepEqual(await claimable([OFFER]), ['plain']);
    assert.deepEqual(await claimable([{ ...OFFER, hash: null }]), ['other-hash', 'plain'], 'no hash accepts any');
    assert.deepEqual(await claimable([{ ...OFFER, hash: 'hash-3' }]), []);
    assert.deepEqual(await claimable([OFFER, { ...OFFER, version: '2' }, { ...OFFER, agent: 'billing' }]), [
      'other-agent',
      'other-version',
      'plain',
    ]);
    assert.deepEqual(await claimable([OFFER], 2), ['newer', 'plain'], 'a newer engine may run a newer contract');
    assert.deepEqual(await claimable([OFFER], 0), []);
  }),

  storeCase(
    'MOD-2',
    'a run that backs off is claimable when its time has come, by the clock of the store',
    async ({ store, wait }) => {
      const { now } = await beat(store, 'worker-1');
      await submit(store, { id: 'past', status: 'retry_wait', nextAttemptAt: now - 1, createdAt: now - 10 });
      await submit(store, { id: 'soon', status: 'retry_wait', nextAttemptAt: now + 40, createdAt: now - 9 });
      await submit(store, { id: 'later', status: 'retry_wait', nextAttemptAt: now + 3_600_000, createdAt: now - 8 });
      const early = await store.due(DUE);
      if (early.now < now + 40)
        sameJson(early.claimable, [{ id: 'past', status: 'retry_wait' }], 'what is due at once');
      await wait(60);
      const late = await store.due(DUE);
      assert.deepEqual(late.claimable.map(({ id }) => id).sort(), ['past', 'soon']);
    },
  ),

  storeCase(
    'OWN-4',
    'a run whose lease has ended may be claimed by anyone, when takeovers are asked for',
    async (subject) => {
      const { store } = subject;
      await running(store, { id: 'live' }, 'worker-live');
      await running(store, { id: 'expired' }, 'worker-old');
      await running(store, { id: 'gone' }, 'worker-gone');
      await expire(subject, 'worker-old');
      await store.retireWorker('worker-gone');
      const claimable = async (takeovers: boolean) =>
        (await store.due({ ...DUE, takeovers })).claimable.map(({ id, status }) => [id, status].join()).sort();
      assert.deepEqual(await claimable(true), ['expired,running', 'gone,running']);
      assert.deepEqual(await claimable(false), []);
      assert.equal(await claim(store, 'live', 'worker-2'), null, 'a live lease holds');
    },
  ),

  storeCase('OWN-4', 'of many that take an expired run over at once one gets it', async (subject) => {
    const { store } = subject;
    await running(store);
    await expire(subject, 'worker-1');
    const workers = upTo(8).map((n) => `worker-${n + 1}`);
    await Promise.all(workers.map((worker) => beat(store, worker)));
    const attempts = await Promise.all(workers.map((worker) => claim(store, 'run-1', worker)));
    assert.deepEqual(
      attempts.filter((attempt) => attempt !== null),
      [2],
    );
    assert.equal((await loaded(store, 'run-1')).owner, workers[attempts.indexOf(2)]);
  }),

  storeCase('RUN-2', 'a worker learns the state of what it holds, claimable or not', async ({ store }) => {
    await running(store, { id: 'run-1' });
    await running(store, { id: 'run-2' });
    await submit(store, { id: 'run-3', status: 'cancelled', attempt: 2 });
    await store.transition({
      runId: 'run-2',
      decide: () => ({
        result: null,
        run: { change: { interruptRequest: { at: 1_700_000_000_777, by: 'bob', journaled: false } }, entries: [] },
        inbox: [
          { runId: 'run-2', requestId: 'm', order: 1, sender: 'bob', message: 'hi', status: 'queued', createdAt: 1 },
        ],
      }),
    });
    const { held } = await store.due({ ...DUE, offers: [], limit: 0, held: ['run-1', 'run-2', 'run-3', 'nothing'] });
    sameJson(
      held.sort((a, b) => (a.id < b.id ? -1 : 1)),
      [
        { id: 'run-1', status: 'running', attempt: 1, interruptRequested: false, hasInbox: false },
        { id: 'run-2', status: 'running', attempt: 1, interruptRequested: true, hasInbox: true },
        { id: 'run-3', status: 'cancelled', attempt: 2, interruptRequested: false, hasInbox: false },
      ],
      'the held runs',
    );
  }),

  storeCase('OWN-5', 'the sweep finds running runs without a live owner', async (subject) => {
    const { store } = subject;
    await running(store, { id: 'live' }, 'worker-live');
    await running(store, { id: 'expired' }, 'worker-old');
    await running(store, { id: 'gone' }, 'worker-gone');
    await submit(store, { id: 'pending' });
    await expire(subject, 'worker-old');
    await store.retireWorker('worker-gone');
    assert.deepEqual((await store.overdue(OVERDUE)).expired.sort(), ['expired', 'gone']);
    assert.equal((await store.overdue({ ...OVERDUE, limit: 1 })).expired.length, 1);
  }),

  storeCase('JRN-7a', 'the sweep finds claimable runs that no live worker can execute', async (subject) => {
    const { store, wait } = subject;
    const { now } = await beat(store, 'worker-1');
    const other = { version: '9' };
    await submit(store, { id: 'offered' });
    await submit(store, { id: 'pending', ...other });
    await submit(store, { id: 'hash', definitionHash: 'hash-9' });
    await submit(store, { id: 'due', ...other, status: 'retry_wait', nextAttemptAt: now - 5 });
    await submit(store, { id: 'not-due', ...other, status: 'retry_wait', nextAttemptAt: now + 3_600_000 });
    await submit(store, { id: 'waiting', ...other, status: 'waiting' });
    await running(store, { id: 'held', ...other }, 'worker-live');
    await running(store, { id: 'lost', ...other }, 'worker-old');
    await expire(subject, 'worker-old');
    await wait(20);
    const unoffered = async (query: Partial<OverdueQuery>) =>
      (await store.overdue({ ...OVERDUE, ...query })).unoffered.sort();
    assert.deepEqual(await unoffered({}), ['due', 'hash', 'lost', 'pending']);
    assert.deepEqual(await unoffered({ liveOffers: [{ ...OFFER, hash: null }] }), ['due', 'lost', 'pending']);
    assert.deepEqual(await unoffered({ liveOffers: [] }), ['due', 'hash', 'lost', 'offered', 'pending']);
    assert.deepEqual(await unoffered({ unofferedAfterMs: 600_000 }), [], 'not before they have waited long enough');
  }),

  storeCase('RUN-6', 'the sweep finds open runs whose deadline has passed', async ({ store }) => {
    const { now } = await beat(store, 'worker-1');
    for (const status of [
      'queued',
      'pending',
      'waiting',
      'interrupted',
      'needs_attention',
      'retry_wait',
      'failed',
    ] as const) {
      await submit(store, { id: `past-${status}`, status, deadlineAt: now - 1 });
    }
    await submit(store, { id: 'future', deadlineAt: now + 3_600_000 });
    await submit(store, { id: 'none' });
    assert.deepEqual((await store.overdue(OVERDUE)).pastDeadline.sort(), [
      'past-interrupted',
      'past-needs_attention',
      'past-pending',
      'past-queued',
      'past-retry_wait',
      'past-waiting',
    ]);
  }),

  storeCase('PPL-6', 'the sweep finds runs that wait for people who have nothing left to answer', async ({ store }) => {
    const waiting = async (
      id: string,
      waitingFor: ('approval' | 'question' | 'budget')[],
      asks: ('pending' | 'approved')[],
    ) => {
      await submit(store, { id, status: 'waiting', waitingFor });
      await ask(
        store,
        asks.map((status, n) => anInteraction({ id: `${id}/${n}`, runId: id, status })),
        id,
      );
    };
    await waiting('open', ['approval'], ['pending']);
    await waiting('half', ['approval', 'question'], ['approved', 'pending']);
    await waiting('answered', ['approval'], ['approved', 'approved']);
    await waiting('budget', ['approval', 'budget'], ['approved']);
    await submit(store, { id: 'pending' });
    assert.deepEqual((await store.overdue(OVERDUE)).answered, ['answered']);
  }),

  storeCase('PPL-6', 'the sweep finds such a run as long as it has nothing left to wait for', async ({ store }) => {
    const answered = async (): Promise<string[]> => (await store.overdue(OVERDUE)).answered;
    const first = anInteraction({ id: 'first' });
    await submit(store, { status: 'waiting', waitingFor: ['approval'] });
    assert.deepEqual(await answered(), ['run-1'], 'it never asked');
    await ask(store, [first, anInteraction({ id: 'second' })]);
    assert.deepEqual(await answered(), []);
    await ask(store, [{ ...first, status: 'approved' }]);
    assert.deepEqual(await answered(), [], 'one ask is open');
    await ask(store, [anInteraction({ id: 'second', status: 'denied' })]);
    assert.deepEqual(await answered(), ['run-1'], 'both are decided, though the run itself was not written');
    await change(store, 'run-1', { waitingFor: ['approval', 'budget'] });
    assert.deepEqual(await answered(), [], 'it waits for tokens too');
    await change(store, 'run-1', { waitingFor: ['approval'] });
    assert.deepEqual(await answered(), ['run-1']);
    await ask(store, [anInteraction({ id: 'third' })]);
    assert.deepEqual(await answered(), []);
    await store.transition({
      runId: 'run-1',
      decide: () => ({
        result: null,
        run: { change: { activeMs: 1 }, entries: [] },
        interactions: [anInteraction({ id: 'third', status: 'expired' })],
      }),
    });
    assert.deepEqual(await answered(), ['run-1'], 'run and ask were written together');
    await change(store, 'run-1', { status: 'pending', waitingFor: [] });
    assert.deepEqual(await answered(), []);
  }),

  storeCase('PPL-5', 'the sweep finds runs with an ask that has expired', async ({ store }) => {
    const { now } = await beat(store, 'worker-1');
    const asked = async (id: string, status: 'pending' | 'approved', expiresAt: number | null) => {
      await submit(store, { id, status: 'waiting', waitingFor: ['approval'] });
      await ask(
        store,
        upTo(2).map((n) => anInteraction({ id: `${id}/${n}`, runId: id, status, expiresAt })),
        id,
      );
    };
    await asked('expired', 'pending', now - 1);
    await asked('future', 'pending', now + 3_600_000);
    await asked('never', 'pending', null);
    await asked('decided', 'approved', now - 1);
    assert.deepEqual((await store.overdue(OVERDUE)).expiredInteractions, ['expired'], 'each run once');
  }),

  storeCase('SUB-6', 'runs of a newer contract are left out of every sweep', async ({ store }) => {
    const { now } = await beat(store, 'worker-1');
    const newer = { contractVersion: 2, deadlineAt: now - 1 };
    await submit(store, { id: 'running', ...newer, status: 'running', owner: 'nobody', attempt: 1 });
    await submit(store, { id: 'waiting', ...newer, status: 'waiting', waitingFor: ['approval'] });
    await submit(store, { id: 'asking', ...newer, status: 'waiting', waitingFor: ['approval'] });
    await ask(store, [anInteraction({ runId: 'asking', expiresAt: now - 1 })], 'asking');
    await submit(store, { id: 'pending', ...newer, createdAt: now - 9, updatedAt: now - 9 });
    const older = await store.overdue({ ...OVERDUE, liveOffers: [] });
    sameJson(
      older,
      { now: older.now, expired: [], unoffered: [], pastDeadline: [], answered: [], expiredInteractions: [] },
      'what an older engine finds',
    );
    const same = await store.overdue({ ...OVERDUE, liveOffers: [], contractVersion: 2 });
    assert.deepEqual(
      [same.expired, same.pastDeadline.length, same.answered, same.expiredInteractions],
      [['running'], 4, ['waiting'], ['asking']],
    );
  }),
];
