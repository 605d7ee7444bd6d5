import assert from 'node:assert/strict';
import type { InboxMessage, Interaction, InteractionQuery, LockedRun, RunStore } from 'nestjs-agent-runs';
import { anInteraction, ask, beat, refusedWith, running, sameJson, submit, upTo } from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

const AT = 1_700_000_000_000;

/** I7: asks and messages are decided, used and delivered once, and found again by anybody. */
export const interactionCases: readonly StoreCase[] = [
  storeCase(
    'PPL-9',
    'an interaction is stored as it was given, arguments included, and found after a restart',
    async ({ store, reopen }) => {
      await submit(store, { id: 'run-1' });
      const full = anInteraction({
        sessionId: 'session-1',
        kind: 'question',
        reason: 'large amount',
        risk: 'high',
        approverRole: 'finance',
        questions: [{ id: 'q1', text: 'Sure?', choices: ['yes', 'no'] }],
        decision: { action: 'accept', by: 'bob', answers: { q1: 'yes' } },
        expiresAt: AT + 86_400_000,
        decidedAt: AT + 5,
        callId: null,
        tool: null,
        arguments: null,
      });
      await ask(store, [full]);
      sameJson((await (await reopen()).interactions({ limit: 10 })).items, [full], 'the interaction');
    },
  ),

  storeCase(
    'PPL-9',
    'interactions are filtered by status, kind, run, session, agent and approver role, oldest first',
    async ({ store }) => {
      await submit(store, { id: 'run-1' });
      await submit(store, { id: 'run-2' });
      await ask(store, [
        anInteraction({ id: 'a', createdAt: AT + 3, sessionId: 's-1' }),
        anInteraction({ id: 'b', createdAt: AT + 1, status: 'approved', approverRole: 'finance' }),
        anInteraction({ id: 'c', createdAt: AT + 2, kind: 'question', agent: 'billing' }),
      ]);
      await ask(
        store,
        [
          anInteraction({ id: 'e', runId: 'run-2', createdAt: AT + 3 }),
          anInteraction({ id: 'd', runId: 'run-2', createdAt: AT + 3, approverRole: 'Finance' }),
        ],
        'run-2',
      );
      const expected: [Omit<InteractionQuery, 'limit'>, string[]][] = [
        [{}, ['b', 'c', 'a', 'd', 'e']],
        [{ statuses: ['pending'] }, ['c', 'a', 'd', 'e']],
        [{ statuses: ['approved', 'denied'] }, ['b']],
        [{ statuses: [] }, []],
        [{ kind: 'question' }, ['c']],
        [{ runId: 'run-2' }, ['d', 'e']],
        [{ sessionId: 's-1' }, ['a']],
        [{ agent: 'billing' }, ['c']],
        [{ approverRole: 'finance' }, ['b']],
        [{ runId: 'run-1', statuses: ['pending'], kind: 'approval' }, ['a']],
      ];
      for (const [query, ids] of expected) {
        for (const limit of [1, 2, 100])
          assert.deepEqual(await found(store, { ...query, limit }), ids, JSON.stringify(query));
      }
    },
  ),

  storeCase('STO-5', 'roles that look alike are different, however long they are', async ({ store }) => {
    await submit(store, { id: 'run-1' });
    const roles = [
      'finance',
      'Finance',
      'finance ',
      'f\u00efnance',
      'fin\0ance',
      `${'r'.repeat(300)}a`,
      `${'r'.repeat(300)}b`,
    ];
    await ask(
      store,
      roles.map((approverRole, n) => anInteraction({ id: `ask-${n}`, approverRole })),
    );
    for (const [n, approverRole] of roles.entries()) {
      const { items } = await store.interactions({ approverRole, limit: 10 });
      assert.deepEqual(
        items.map((asked) => [asked.id, asked.approverRole]),
        [[`ask-${n}`, approverRole]],
      );
    }
  }),

  storeCase(
    'PPL-9',
    'asks of one moment are listed by run, and within a run in call order, whatever their ids are',
    async ({ store, reopen }) => {
      // In the order in which they are to be listed, with ids that sort the other way round.
      const asks = [
        ['run-1', 'r1.m2.t0', 0],
        ['run-1', 'r1.m10.t2', 0],
        ['run-1', 'r1.m10.t2', 1],
        ['run-1', 'r1.m10.t2', 2],
        ['run-1', 'r1.m10.t2', 10],
        ['run-1', 'r1.m10.t9', 0],
        ['run-1', 'r1.m10.t10', 0],
        ['run-1', 'r2.m1.t0', 0],
        ['run-2', 'r1.m1.t0', 0],
      ].map(([runId, operationKey, ordinal], n) =>
        anInteraction({ id: `ask-${9 - n}`, runId, operationKey, ordinal } as Partial<Interaction>),
      );
      for (const id of ['run-1', 'run-2']) {
        await submit(store, { id });
        await ask(store, asks.filter(({ runId }) => runId === id).reverse(), id);
      }
      const ids = asks.map(({ id }) => id);
      for (const limit of [1, 2, 3, 4, 100]) assert.deepEqual(await found(store, { limit }), ids, `pages of ${limit}`);
      assert.deepEqual(await found(store, { limit: 2, runId: 'run-1', statuses: ['pending'] }), ids.slice(0, -1));
      assert.deepEqual(
        (await shown(store)).interactions.map(({ id }) => id),
        ids.slice(0, -1),
        'a decider sees them in the same order',
      );
      const first = await store.interactions({ limit: 5 });
      const rest = await (await reopen()).interactions({ limit: 100, cursor: first.nextCursor ?? '' });
      assert.deepEqual(
        rest.items.map(({ id }) => id),
        ids.slice(5),
        'a cursor outlives the process that gave it',
      );
    },
  ),

  storeCase('PPL-9', 'interactions are filtered by the metadata of the run that asks', async ({ store }) => {
    const gold = { tenant: 'a', tier: 'gold', n: 5 };
    for (const [id, metadata] of Object.entries({ 'run-1': gold, 'run-2': { ...gold, tenant: 'b' }, 'run-3': {} })) {
      await submit(store, { id, metadata });
      const asks = ['x', 'y'].map((name) => anInteraction({ id: `${id}-${name}`, runId: id }));
      await ask(store, asks, id);
    }
    const expected: [Omit<InteractionQuery, 'limit'>, string[]][] = [
      [{ metadata: { tenant: 'a' } }, ['run-1-x', 'run-1-y']],
      [{ metadata: { tier: 'gold', n: '5' } }, ['run-1-x', 'run-1-y', 'run-2-x', 'run-2-y']],
      [{ metadata: { tier: 'gold', tenant: 'b' }, statuses: ['pending'] }, ['run-2-x', 'run-2-y']],
      [{ metadata: { tenant: 'a' }, runId: 'run-2' }, []],
      [{ metadata: { tenant: 'A' } }, []],
      [{ metadata: {}, runId: 'run-3' }, ['run-3-x', 'run-3-y']],
    ];
    for (const [query, ids] of expected) {
      for (const limit of [1, 100])
        assert.deepEqual(await found(store, { ...query, limit }), ids, JSON.stringify(query));
    }
  }),

  storeCase(
    'PPL-3',
    'a decider sees the interactions that are neither used nor withdrawn, oldest first',
    async ({ store }) => {
      await submit(store, { id: 'run-1' });
      await submit(store, { id: 'run-2' });
      const statuses: Interaction['status'][] = [
        'pending',
        'approved',
        'denied',
        'answered',
        'declined',
        'expired',
        'used',
        'cancelled',
      ];
      await ask(
        store,
        statuses.map((status, n) => anInteraction({ id: status, status, createdAt: AT - n })),
      );
      await ask(store, [anInteraction({ id: 'other', runId: 'run-2' })], 'run-2');
      const { interactions } = await shown(store);
      assert.deepEqual(
        interactions.map(({ id }) => id),
        ['expired', 'declined', 'answered', 'denied', 'approved', 'pending'],
      );
      sameJson(interactions[5], anInteraction({ id: 'pending', createdAt: AT }), 'a shown interaction');
    },
  ),

  storeCase('PPL-3', 'of many decisions at once one binds, and the others see it', async ({ store }) => {
    await submit(store, { id: 'run-1', status: 'waiting', waitingFor: ['approval'] });
    await ask(store, [anInteraction()]);
    const outcomes = await Promise.all(
      upTo(8).map((n) =>
        store.transition<'bound' | 'late'>({
          runId: 'run-1',
          decide: ({ interactions: [asked], now }) => {
            if (asked?.status !== 'pending') return { result: 'late' };
            const decided = {
              ...asked,
              status: n % 2 ? ('approved' as const) : ('denied' as const),
              decidedAt: now,
              decision: { decision: 'approve' as const, by: `bob-${n}` },
            };
            return { result: 'bound', interactions: [decided] };
          },
        }),
      ),
    );
    const bound = outcomes.flatMap((one, index) =>
      one.outcome === 'done' && one.result === 'bound' ? [index + 1] : [],
    );
    assert.equal(bound.length, 1);
    const [stored] = (await store.interactions({ limit: 10 })).items;
    sameJson(stored?.decision, { decision: 'approve', by: `bob-${bound[0]}` }, 'the decision');
    assert.equal(stored?.status, (bound[0] ?? 0) % 2 ? 'approved' : 'denied');
  }),

  storeCase('PPL-4', 'a decision is not decided again: not even by a decider that asks for it', async ({ store }) => {
    await submit(store, { id: 'run-1' });
    const approved = anInteraction({ status: 'approved', decision: { decision: 'approve', by: 'bob' }, decidedAt: AT });
    await ask(store, [anInteraction()]);
    await ask(store, [anInteraction({ reason: 'a pending one may be rewritten' })]);
    await ask(store, [approved]);
    const others: Interaction[] = [
      anInteraction(),
      { ...approved, status: 'denied' },
      { ...approved, decision: { decision: 'approve', by: 'eve' } },
      { ...approved, status: 'used', decision: { decision: 'approve', by: 'eve' } },
      { ...approved, status: 'used', digest: 'digest-2' },
      { ...approved, status: 'expired' },
    ];
    for (const other of others) {
      await refusedWith(
        'STORE_CONFLICT',
        ask(store, [other]),
        JSON.stringify([other.status, other.decision, other.digest]),
      );
    }
    sameJson((await store.interactions({ limit: 10 })).items, [approved], 'the decided interaction');
  }),

  storeCase('PPL-4', 'a decision is used once', async ({ store }) => {
    await submit(store, { id: 'run-1' });
    for (const [n, status] of (['approved', 'denied', 'answered'] as const).entries()) {
      const decided = anInteraction({ id: `ask-${n}`, status, decision: { decision: 'approve', by: 'bob' } });
      await ask(store, [decided]);
      await ask(store, [{ ...decided, status: 'used' }]);
      for (const again of ['used', 'pending', 'cancelled', status] as const) {
        await refusedWith('STORE_CONFLICT', ask(store, [{ ...decided, status: again }]), `${status}, used, ${again}`);
      }
    }
    assert.deepEqual((await shown(store)).interactions, []);
    assert.equal((await store.interactions({ statuses: ['used'], limit: 10 })).items.length, 3);
  }),

  storeCase(
    'PPL-3',
    'an open interaction is withdrawn by a cancel, and cannot be answered afterwards',
    async ({ store }) => {
      await submit(store, { id: 'run-1' });
      await ask(store, [anInteraction()]);
      await ask(store, [anInteraction({ status: 'cancelled' })]);
      await refusedWith(
        'STORE_CONFLICT',
        ask(store, [anInteraction({ status: 'approved' })]),
        'approving a withdrawn ask',
      );
    },
  ),

  storeCase(
    'STR-1',
    'queued messages are shown in order, delivered once, and go on taking their request ids',
    async ({ store, reopen }) => {
      await running(store);
      await submit(store, { id: 'run-2' });
      for (const order of [2, 1, 3]) await post(store, [message({ order, requestId: `m-${order}` })]);
      await post(store, [message({ runId: 'run-2', requestId: 'm-1', message: 'other' })], 'run-2');
      const { inbox } = await shown(store);
      sameJson(
        inbox,
        upTo(3).map((order) => message({ order, requestId: `m-${order}` })),
        'the inbox',
      );
      await post(
        store,
        inbox.slice(0, 2).map((one) => ({ ...one, status: 'delivered' })),
      );
      const after = await reopen();
      assert.deepEqual(
        (await shown(after)).inbox.map(({ requestId, status }) => `${requestId} ${status}`),
        ['m-3 queued'],
      );
      assert.deepEqual(
        (await shown(after, 'run-2')).inbox.map(({ message: text }) => text),
        ['other'],
      );
      await refusedWith(
        'STORE_CONFLICT',
        post(after, [message({ order: 1, requestId: 'm-1' })]),
        'queueing a delivered message again',
      );
      await post(after, [message({ order: 3, requestId: 'm-3', status: 'withdrawn' })]);
      assert.deepEqual((await shown(after)).inbox, []);
    },
  ),

  storeCase(
    'STR-1',
    'whoever sends a message is shown the one that has its id already, and the order of the last one, not the queue',
    async ({ store }) => {
      await running(store);
      const sees = async (inboxRequestId: string): Promise<unknown> => {
        const sent = await store.transition({
          runId: 'run-1',
          inboxRequestId,
          decide: ({ inbox, lastMessageOrder }) => ({ result: [inbox.map(({ status }) => status), lastMessageOrder] }),
        });
        return sent.outcome === 'done' ? sent.result : sent.outcome;
      };
      sameJson(await sees('m-1'), [[], 0], 'an empty inbox');
      await post(store, [message({ order: 7, requestId: 'm-7' }), message({ order: 8, requestId: 'm-8' })]);
      await post(store, [message({ order: 7, requestId: 'm-7', status: 'delivered' })]);
      sameJson(await sees('m-7'), [['delivered'], 8], 'a message that is there');
      sameJson(await sees('m-9'), [[], 8], 'a new message');
    },
  ),

  storeCase(
    'STR-1',
    'a message sent while a run moves on is either seen by that move or found by the next one',
    async ({ store }) => {
      await beat(store, 'worker-1');
      for (const n of upTo(10)) {
        const id = `run-${n}`;
        await running(store, { id });
        const [finished] = await Promise.all([
          store.transition<'delivered' | 'done'>({
            runId: id,
            decide: ({ inbox }) =>
              inbox.length > 0
                ? { result: 'delivered', inbox: inbox.map((one) => ({ ...one, status: 'delivered' })) }
                : { result: 'done', run: { change: { status: 'completed' }, entries: [] } },
          }),
          store.transition<null>({
            runId: id,
            decide: ({ run }) => ({
              result: null,
              ...(run.status === 'running' ? { inbox: [message({ runId: id, requestId: 'm' })] } : {}),
            }),
          }),
        ]);
        assert.ok(finished.outcome === 'done');
        const { inbox, run } = await shown(store, id);
        if (finished.result === 'done') assert.deepEqual(inbox, [], 'nothing is left in the inbox of a finished run');
        else assert.equal(run.status, 'running');
      }
    },
  ),
];

function message(overrides: Partial<InboxMessage> = {}): InboxMessage {
  return {
    runId: 'run-1',
    requestId: 'm-1',
    order: 1,
    sender: 'bob',
    message: { role: 'user', content: [] },
    status: 'queued',
    createdAt: AT,
    ...overrides,
  };
}

async function post(store: RunStore, inbox: InboxMessage[], runId = 'run-1'): Promise<void> {
  const done = await store.transition({ runId, decide: () => ({ result: null, inbox }) });
  assert.equal(done.outcome, 'done');
}

/** What a decider sees. */
async function shown(store: RunStore, runId = 'run-1'): Promise<LockedRun> {
  const done = await store.transition({ runId, decide: (locked) => ({ result: locked }) });
  assert.ok(done.outcome === 'done');
  return done.result;
}

async function found(store: RunStore, query: InteractionQuery): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await store.interactions({ ...query, ...(cursor === undefined ? {} : { cursor }) });
    assert.ok(page.items.length <= query.limit, 'no page is larger than asked for');
    ids.push(...page.items.map(({ id }) => id));
    assert.equal(new Set(ids).size, ids.length, 'no interaction is listed twice');
    if (page.nextCursor === undefined) return ids;
    cursor = page.nextCursor;
  }
}
