import assert from 'node:assert/strict';
import type { InteractionQuery, ListQuery, Page, RecordedText, RunStore } from 'nestjs-agent-runs';
import { anInteraction, ask, change, loaded, note, refusedWith, sameJson, submit, upTo } from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

const AT = 1_700_000_000_000;

/** Lists page in a stable order by an opaque cursor, filter exactly, and carry no content. */
export const listingCases: readonly StoreCase[] = [
  storeCase('STO-8', 'runs are listed newest first, and by id where they are of one moment', async ({ store }) => {
    for (const [id, createdAt] of [
      ['run-B', 5],
      ['run-a', 5],
      ['run-c', 4],
      ['run-0', 6],
      ['run-Z', 5],
    ] as const) {
      await submit(store, { id, createdAt: AT + createdAt });
    }
    const { items, nextCursor } = await store.list({ limit: 100 });
    assert.deepEqual(
      items.map(({ id }) => id),
      ['run-0', 'run-a', 'run-Z', 'run-B', 'run-c'],
    );
    assert.equal(nextCursor, undefined, 'no cursor on the last page');
  }),

  storeCase(
    'STO-8',
    'pages of any size give each run once, in the order of the whole list',
    async ({ store, reopen }) => {
      for (const n of upTo(11)) await submit(store, { id: `run-${n}`, createdAt: AT + Math.floor(n / 5) });
      const all = (await store.list({ limit: 100 })).items.map(({ id }) => id);
      assert.equal(new Set(all).size, 11);
      for (const limit of [1, 2, 3, 10, 11]) assert.deepEqual(await listed(store, { limit }), all, `pages of ${limit}`);
      const first = await store.list({ limit: 4 });
      assert.ok(first.nextCursor);
      const rest = await (await reopen()).list({ limit: 100, cursor: first.nextCursor });
      assert.deepEqual(
        rest.items.map(({ id }) => id),
        all.slice(4),
        'a cursor outlives the process that gave it',
      );
    },
  ),

  storeCase(
    'STO-8',
    'runs that come, change or leave the filter while a list is read move no other run',
    async ({ store }) => {
      for (const n of upTo(6)) await submit(store, { id: `run-${n}`, createdAt: AT + n });
      const query = { limit: 2, statuses: ['pending' as const] };
      const first = await store.list(query);
      assert.deepEqual(
        first.items.map(({ id }) => id),
        ['run-6', 'run-5'],
      );
      await submit(store, { id: 'run-7', createdAt: AT + 7 });
      await change(store, 'run-5', { status: 'cancelled' });
      await change(store, 'run-4', { recoveries: 1 });
      const second = await store.list({ ...query, cursor: first.nextCursor ?? '' });
      assert.deepEqual(
        second.items.map(({ id }) => id),
        ['run-4', 'run-3'],
      );
    },
  ),

  storeCase('STO-8', 'filters select by session, agent and status, alone and together', async ({ store }) => {
    await submit(store, { id: 'run-1', sessionId: 's-1', createdAt: AT + 5 });
    await submit(store, { id: 'run-2', sessionId: 's-1', agent: 'billing', createdAt: AT + 4 });
    await submit(store, { id: 'run-3', sessionId: 'S-1', createdAt: AT + 3 });
    await submit(store, { id: 'run-4', status: 'failed', createdAt: AT + 2 });
    await submit(store, { id: 'run-5', status: 'waiting', createdAt: AT + 1 });
    const expected: [Omit<ListQuery, 'limit'>, string[]][] = [
      [{}, ['run-1', 'run-2', 'run-3', 'run-4', 'run-5']],
      [{ sessionId: 's-1' }, ['run-1', 'run-2']],
      [{ sessionId: 'S-1' }, ['run-3']],
      [{ sessionId: 'nothing' }, []],
      [{ agent: 'billing' }, ['run-2']],
      [{ agent: 'Billing' }, []],
      [{ agent: 'b\u00eflling' }, []],
      [{ agent: 'billing\0' }, []],
      [{ sessionId: '\ud83d', statuses: ['pending'] }, []],
      [{ statuses: ['failed'] }, ['run-4']],
      [{ statuses: ['failed', 'waiting', 'queued'] }, ['run-2', 'run-4', 'run-5']],
      [{ statuses: [] }, []],
      [{ sessionId: 's-1', agent: 'support', statuses: ['pending'] }, ['run-1']],
    ];
    for (const [query, ids] of expected) {
      for (const limit of [1, 100])
        assert.deepEqual(await listed(store, { ...query, limit }), ids, JSON.stringify(query));
    }
  }),

  storeCase('STO-8', 'metadata selects exactly, by all given pairs, whatever type a value has', async ({ store }) => {
    await submit(store, { id: 'run-1', metadata: { tier: 'gold', n: 5, ok: true }, createdAt: AT + 5 });
    await submit(store, { id: 'run-2', metadata: { tier: 'Gold', n: 50, ok: false }, createdAt: AT + 4 });
    await submit(store, { id: 'run-3', metadata: { tier: 'gold ', n: 5.5 }, createdAt: AT + 3 });
    await submit(store, { id: 'run-4', metadata: { tier: 'g%', n: '5', Tier: 'gold' }, createdAt: AT + 2 });
    await submit(store, { id: 'run-5', createdAt: AT + 1 });
    const expected: [NonNullable<ListQuery['metadata']>, string[]][] = [
      [{ tier: 'gold' }, ['run-1']],
      [{ tier: 'Gold' }, ['run-2']],
      [{ tier: 'gold ' }, ['run-3']],
      [{ tier: 'g%' }, ['run-4']],
      [{ tier: '%' }, []],
      [{ Tier: 'gold' }, ['run-4']],
      [{ n: 5 }, ['run-1', 'run-4']],
      [{ n: '5' }, ['run-1', 'run-4']],
      [{ n: 5.5 }, ['run-3']],
      [{ ok: true }, ['run-1']],
      [{ ok: 'true' }, ['run-1']],
      [{ ok: false }, ['run-2']],
      [{ tier: 'gold', n: 5, ok: true }, ['run-1']],
      [{ tier: 'gold', n: 50 }, []],
      [{ nothing: 'x' }, []],
      [{ toString: 'x' }, []],
      [{}, ['run-1', 'run-2', 'run-3', 'run-4', 'run-5']],
    ];
    for (const [metadata, ids] of expected) {
      assert.deepEqual(await listed(store, { metadata, limit: 2 }), ids, JSON.stringify(metadata));
    }
  }),

  storeCase('STO-8', 'sixteen pairs of metadata select runs and interactions', async ({ store }) => {
    const metadata = Object.fromEntries(upTo(16).map((n) => [`key-${n}`, n]));
    await submit(store, { id: 'run-1', metadata });
    await submit(store, { id: 'run-2', metadata: { ...metadata, 'key-16': 0 } });
    await ask(store, [anInteraction({ id: 'ask-1', runId: 'run-1' })]);
    assert.deepEqual(await listed(store, { metadata, limit: 1 }), ['run-1']);
    const { items } = await store.interactions({ metadata, limit: 2 });
    assert.deepEqual(
      items.map(({ id }) => id),
      ['ask-1'],
    );
    for (const value of ['a\0', '\ud83d', '\u00e9'])
      assert.deepEqual(await listed(store, { metadata: { 'key-1': value }, limit: 1 }), []);
  }),

  storeCase(
    'STO-8',
    'runs are filtered by who started them and when, alone and with every other filter',
    async ({ store }) => {
      const alice = { id: 'alice', roles: ['finance'] };
      await submit(store, { id: 'run-1', actor: alice, sessionId: 's-1', createdAt: AT + 5 });
      await submit(store, { id: 'run-2', actor: alice, status: 'failed', metadata: { n: 5 }, createdAt: AT + 4 });
      await submit(store, { id: 'run-3', actor: { id: 'Alice' }, agent: 'billing', createdAt: AT + 3 });
      await submit(store, { id: 'run-4', actor: { id: 'alice' }, status: 'completed', createdAt: AT + 2 });
      await submit(store, { id: 'run-5', actor: null, metadata: { n: 5 }, createdAt: AT + 1 });
      const expected: [Omit<ListQuery, 'limit'>, string[]][] = [
        [{ actorId: 'alice' }, ['run-1', 'run-2', 'run-4']],
        [{ actorId: 'Alice' }, ['run-3']],
        [{ actorId: 'alice ' }, []],
        [{ actorId: 'null' }, []],
        [{ actorId: '' }, []],
        [{ actorId: 'alice', statuses: ['failed', 'completed'] }, ['run-2', 'run-4']],
        [{ actorId: 'alice', statuses: [] }, []],
        [{ actorId: 'alice', sessionId: 's-1' }, ['run-1']],
        [{ actorId: 'alice', agent: 'billing' }, []],
        [{ actorId: 'alice', metadata: { n: 5 } }, ['run-2']],
        [{ createdSince: AT + 2 }, ['run-1', 'run-2', 'run-3', 'run-4']],
        [{ createdBefore: AT + 4 }, ['run-3', 'run-4', 'run-5']],
        [{ createdSince: AT + 2, createdBefore: AT + 4 }, ['run-3', 'run-4']],
        [{ createdSince: AT + 4, createdBefore: AT + 4 }, []],
        [{ createdSince: AT + 6 }, []],
        [{ createdSince: 0, createdBefore: Date.UTC(9999, 0) }, ['run-1', 'run-2', 'run-3', 'run-4', 'run-5']],
        [{ createdSince: AT + 2, actorId: 'alice', statuses: ['pending', 'completed'] }, ['run-1', 'run-4']],
        [{ createdBefore: AT + 4, metadata: { n: 5 } }, ['run-5']],
        [{ createdSince: AT + 4, statuses: ['failed'] }, ['run-2']],
      ];
      for (const [query, ids] of expected) {
        for (const limit of [1, 2, 100])
          assert.deepEqual(await listed(store, { ...query, limit }), ids, JSON.stringify(query));
      }
    },
  ),

  storeCase(
    'PPL-9',
    'interactions are filtered by who started the run that asks, and by when they were asked',
    async ({ store }) => {
      for (const [id, actor] of Object.entries({ 'run-1': { id: 'alice' }, 'run-2': { id: 'Alice' }, 'run-3': null })) {
        await submit(store, { id, actor, metadata: { n: 5 } });
        const asked = [1, 2].map((n) => anInteraction({ id: `${id}-${n}`, runId: id, actor, createdAt: AT + n }));
        await ask(store, asked, id);
      }
      await change(store, 'run-1', { status: 'waiting', waitingFor: ['approval'] });
      const expected: [Omit<InteractionQuery, 'limit'>, string[]][] = [
        [{ actorId: 'alice' }, ['run-1-1', 'run-1-2']],
        [{ actorId: 'Alice', statuses: ['pending'] }, ['run-2-1', 'run-2-2']],
        [{ actorId: 'bob' }, []],
        [{ actorId: 'alice', metadata: { n: 5 } }, ['run-1-1', 'run-1-2']],
        [{ actorId: 'alice', runId: 'run-2' }, []],
        [{ createdSince: AT + 2 }, ['run-1-2', 'run-2-2', 'run-3-2']],
        [{ createdBefore: AT + 2, statuses: ['pending', 'used'] }, ['run-1-1', 'run-2-1', 'run-3-1']],
        [{ createdBefore: AT + 2, actorId: 'alice', agent: 'support' }, ['run-1-1']],
        [{ createdSince: AT + 3 }, []],
      ];
      for (const [query, ids] of expected) {
        for (const limit of [1, 100])
          assert.deepEqual(await asked(store, { ...query, limit }), ids, JSON.stringify(query));
      }
    },
  ),

  storeCase('STO-5', 'metadata values and actors that look alike are different', async ({ store }) => {
    const values = [
      'User-1',
      'user-1',
      'user-1 ',
      'user-1\t',
      'us\u00e9r-1',
      'use\u0301r-1',
      '\uff55ser-1',
      'stra\u00dfe',
      'strasse',
      '\u0130',
      'i',
      'K',
      '\u212a',
      '\ud83d\udd11',
      '',
      '0',
      'null',
      'undefined',
      `${'a'.repeat(190)}b`,
      `${'a'.repeat(190)}c`,
    ];
    const long = ['d', 'e'].map((end) => `${'x'.repeat(5_000)}${end}`);
    for (const id of long) await submit(store, { id: `run-${id.at(-1)}`, actor: { id } });
    for (const id of long) assert.deepEqual(await listed(store, { actorId: id, limit: 10 }), [`run-${id.at(-1)}`]);
    for (const [n, value] of values.entries())
      await submit(store, { id: `run-${n}`, metadata: { key: value }, actor: { id: value } });
    for (const [n, value] of values.entries()) {
      assert.deepEqual(
        await listed(store, { metadata: { key: value }, limit: 10 }),
        [`run-${n}`],
        JSON.stringify(value),
      );
      assert.deepEqual(await listed(store, { actorId: value, limit: 10 }), [`run-${n}`], JSON.stringify(value));
      assert.equal((await loaded(store, `run-${n}`)).metadata['key'], value);
    }
  }),

  storeCase('STO-8', 'a summary tells the state of a run and none of its content', async ({ store }) => {
    const secret = 'canary-1f0e';
    const { run } = await submit(
      store,
      {
        id: 'run-1',
        status: 'needs_attention',
        attention: { reason: 'limit', detail: 'too large' as RecordedText },
        waitingFor: ['budget'],
        output: { secret },
        error: { code: 'X', message: secret as RecordedText },
        wake: { cause: 'retried', reason: secret },
        actor: { id: 'alice' },
        metadata: { tier: 'gold' },
        nextAttemptAt: AT + 9,
        startedAt: AT + 2,
        finishedAt: AT + 3,
      },
      { entries: [note(secret)] },
    );
    const { items } = await store.list({ limit: 1 });
    const keys = [
      'id',
      'agent',
      'version',
      'status',
      'waitingFor',
      'attention',
      'sessionId',
      'sessionOrder',
      'precedingRunId',
      'actor',
      'attempt',
      'sequence',
      'totals',
      'actor',
      'metadata',
      'nextAttemptAt',
      'createdAt',
      'updatedAt',
      'startedAt',
      'finishedAt',
    ] as const;
    sameJson(items[0], Object.fromEntries(keys.map((key) => [key, run[key]])), 'the summary');
    assert.ok(!JSON.stringify(items).includes(secret));
  }),

  storeCase('STO-8', 'a cursor that the list did not give is refused', async ({ store }) => {
    for (const n of upTo(3)) await submit(store, { id: `run-${n}` });
    await ask(
      store,
      upTo(3).map((n) => anInteraction({ id: `ask-${n}` })),
    );
    const [runs, asks] = [await store.list({ limit: 1 }), await store.interactions({ limit: 1 })];
    assert.ok(runs.nextCursor && asks.nextCursor);
    const base64 = (text: string) => Buffer.from(text).toString('base64url');
    const bad = [
      '',
      ' ',
      'x',
      '0',
      'null',
      '%',
      base64('{}'),
      base64('[]'),
      base64('[1,2]'),
      base64('null'),
      // What no id holds, and what some databases fail on.
      ...['a\0', 'r\u00e9', '\ud83d', '\ud83d\udd11', '', 'a'.repeat(500)].flatMap((text) => [
        base64(JSON.stringify(['runs', 1, text])),
        base64(JSON.stringify(['interactions', 1, 'run-1', text, 'ask-1'])),
        base64(JSON.stringify(['interactions', 1, 'run-1', '1', text])),
      ]),
      base64(JSON.stringify(['runs', 1.5, 'run-1'])),
      'a\0',
      '\u00e9',
      `${runs.nextCursor}\0`,
      `${runs.nextCursor} `,
      `${runs.nextCursor}=`,
      `${runs.nextCursor}x`,
    ];
    for (const cursor of [...bad, asks.nextCursor]) {
      await refusedWith('INVALID_CURSOR', store.list({ limit: 1, cursor }), `the cursor ${JSON.stringify(cursor)}`);
    }
    for (const cursor of [...bad, runs.nextCursor]) {
      await refusedWith(
        'INVALID_CURSOR',
        store.interactions({ limit: 1, cursor }),
        `the cursor ${JSON.stringify(cursor)}`,
      );
    }
  }),
];

const listed = (store: RunStore, query: ListQuery) => idsOf((one) => store.list(one), query);
const asked = (store: RunStore, query: InteractionQuery) => idsOf((one) => store.interactions(one), query);

/** Ids of all pages. */
async function idsOf<Q extends { limit: number; cursor?: string }>(
  read: (query: Q) => Promise<Page<{ id: string }>>,
  query: Q,
): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await read({ ...query, ...(cursor === undefined ? {} : { cursor }) });
    assert.ok(page.items.length <= query.limit, 'no page is larger than asked for');
    ids.push(...page.items.map(({ id }) => id));
    assert.equal(new Set(ids).size, ids.length, 'nothing is listed twice');
    if (page.nextCursor === undefined) return ids;
    assert.equal(page.items.length, query.limit, 'only the last page is short');
    cursor = page.nextCursor;
  }
}
