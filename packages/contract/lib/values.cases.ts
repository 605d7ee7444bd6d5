import assert from 'node:assert/strict';
import type { JsonObject, JsonValue, RecordedText, RunStore } from 'nestjs-agent-runs';
import {
  LONG_LEASE_MS,
  anInteraction,
  appendNotes,
  ask,
  beat,
  change,
  journal,
  loaded,
  note,
  notesOf,
  running,
  sameJson,
  submit,
  totalsOf,
} from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

const CONTROL: JsonObject = {
  top: 'a\u0000b',
  nested: [{ 'k\u0000ey': '\u0001\u001f\u007f\u0085\u2028\u2029\ufffe\uffff' }],
  bell: '\u0007bell',
  lines: '\r\n\t\b\f\v',
  escapes: '\\ \\\\ \\" " \' \\u0000 \\n %s ? :name $1 {{x}} \u0000',
};

const UNICODE: JsonObject = {
  emoji: '\ud83d\udd11\ud83d\udc69\u200d\ud83d\udc69\u200d\ud83d\udc67\ud83c\uddea\ud83c\uddfa'.repeat(50),
  loneHigh: 'x\ud83dy',
  loneLow: '\udd11',
  swapped: '\udd11\ud83d',
  '\ud83d': 'a lone surrogate as key',
  noncharacters: '\ufffe\uffff\ufdd0',
  combining: 'use\u0301r / us\u00e9r',
  bom: '\ufeffbom',
};

/** As JSON texts: an object literal cannot say `__proto__` as a plain key. */
const PROTO = [
  '{"__proto__":{"isAdmin":true}}',
  '{"a":{"__proto__":{"isAdmin":true}}}',
  '{"constructor":{"prototype":{"isAdmin":true}}}',
  '[{"__proto__":[]}]',
  '{"toString":1,"valueOf":2,"hasOwnProperty":3}',
  '{"toJSON":5,"length":5,"then":"x","__defineGetter__":1}',
];

const KEYS: JsonObject = Object.fromEntries(
  [
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
    `${'a'.repeat(259)}b`,
    `${'a'.repeat(259)}c`,
    '\ud83d\udd11',
    '',
    '0',
    '10',
    '9',
    'null',
    'undefined',
  ].map((key, n) => [key, n]),
);

const NUMBERS: JsonValue[] = [
  0,
  1,
  -1,
  0.1,
  0.1 + 0.2,
  1e308,
  5e-324,
  -1.5e-9,
  2 ** 53 - 1,
  -(2 ** 53 - 1),
  2 ** 53 + 2,
  1e21,
  123456789.12345679,
];

/** Texts and scalars that a reader which parses once too often, or once too seldom, takes for one another. */
const SCALARS: JsonValue[] = [
  'null',
  null,
  'true',
  true,
  'false',
  false,
  '0',
  0,
  '123',
  123,
  '""',
  '',
  '"quoted"',
  '{"a":1}',
  { a: 1 },
  '[]',
  [],
  {},
  [[]],
  [null],
  { a: null },
];

function nested(depth: number): JsonValue {
  let value: JsonValue = 'deep';
  for (let level = 0; level < depth; level += 1) value = level % 2 ? [value] : { d: value };
  return value;
}

/** What goes in comes out, exactly, and never as the object somebody else holds. */
export const valueCases: readonly StoreCase[] = [
  storeCase(
    'JRN-9',
    'control characters, NUL and any unicode are stored exactly, wherever a value may stand',
    async ({ store, reopen }) => {
      for (const [n, value] of [CONTROL, UNICODE, KEYS].entries()) {
        const id = `run-${n}`;
        const text = Object.values(value)
          .filter((one) => typeof one === 'string')
          .join('|');
        await running(store, { id, actor: { id: text, roles: [text] } });
        await appendNotes(store, id, 1, [value, text]);
        await change(store, id, {
          output: value,
          error: { code: 'X', message: text as RecordedText },
          attention: { reason: 'limit', detail: text as RecordedText },
          wake: { cause: 'retried', reason: text, by: text },
        });
        const asked = anInteraction({
          id: `ask-${n}`,
          runId: id,
          arguments: value,
          reason: text,
          risk: text,
          questions: [{ id: 'q', text, choices: [text], schema: value }],
          decision: { decision: 'approve', by: text, note: text, arguments: value },
        });
        await ask(store, [asked], id);
        const sent = {
          runId: id,
          requestId: 'm',
          order: 1,
          sender: 'bob',
          message: value,
          status: 'queued' as const,
          createdAt: 1,
        };
        await store.transition({ runId: id, decide: () => ({ result: null, inbox: [sent] }) });
        const reader = n === 2 ? await reopen() : store;
        const run = await loaded(reader, id);
        sameJson(notesOf(await journal(reader, id)), [value, text], 'entries');
        sameJson(run.output, value, 'the output');
        sameJson(
          [run.error?.message, run.attention?.detail, run.wake?.reason, run.wake?.by],
          [text, text, text, text],
          'texts of the run',
        );
        sameJson(run.actor, { id: text, roles: [text] }, 'the actor');
        await reader.transition({
          runId: id,
          decide: ({ interactions, inbox }) => {
            sameJson(interactions, [asked], 'the interaction');
            sameJson(inbox, [sent], 'the message');
            return { result: null };
          },
        });
      }
    },
  ),

  storeCase(
    'JRN-9',
    '__proto__ and its kin are plain keys, and change nothing about any object',
    async ({ store, reopen }) => {
      const values = PROTO.map((text) => JSON.parse(text) as JsonValue);
      await running(store);
      await appendNotes(store, 'run-1', 1, values);
      for (const [n, value] of values.entries())
        await submit(store, { id: `out-${n}`, status: 'completed', output: value });
      const reader = await reopen();
      const notes = notesOf(await journal(reader, 'run-1'));
      for (const [n, text] of PROTO.entries()) {
        assert.equal(JSON.stringify(notes[n]), text, 'an entry');
        assert.equal(JSON.stringify((await loaded(reader, `out-${n}`)).output), text, 'an output');
      }
      assert.equal(({} as Record<string, unknown>)['isAdmin'], undefined);
      assert.ok(Object.hasOwn(notes[0] as object, '__proto__'));
    },
  ),

  storeCase('JRN-9', '__proto__ is a metadata key like any other', async ({ store }) => {
    const metadata = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>;
    await submit(store, { id: 'run-1', metadata });
    await submit(store, { id: 'run-2' });
    assert.equal(JSON.stringify((await loaded(store, 'run-1')).metadata), JSON.stringify(metadata));
    for (const filter of ['{"__proto__":"a"}', '{"constructor":"b"}', '{"__proto__":"a","constructor":"b"}']) {
      const query = { metadata: JSON.parse(filter) as Record<string, string>, limit: 10 };
      assert.deepEqual(
        (await store.list(query)).items.map(({ id }) => id),
        ['run-1'],
        filter,
      );
    }
  }),

  storeCase('STO-2', 'numbers, empty values, and null beside absent are kept apart', async ({ store, reopen }) => {
    await running(store);
    await appendNotes(store, 'run-1', 1, [...NUMBERS, ...SCALARS]);
    for (const [n, value] of SCALARS.entries()) await submit(store, { id: `out-${n}`, output: value });
    await submit(store, { id: 'changed' });
    for (const value of SCALARS) {
      sameJson((await change(store, 'changed', { output: value })).output, value, 'a changed output');
      sameJson((await loaded(store, 'changed')).output, value, 'a changed and loaded output');
    }
    const reader = await reopen();
    sameJson(notesOf(await journal(reader, 'run-1')), [...NUMBERS, ...SCALARS], 'entries');
    for (const [n, value] of SCALARS.entries())
      sameJson((await loaded(reader, `out-${n}`)).output, value, `output ${n}`);
  }),

  storeCase('STO-2', 'numbers of the header are numbers, of any size they may have', async ({ store }) => {
    const at = 1_700_000_000_001;
    const big = 2 ** 53 - 1;
    const totals = {
      ...totalsOf(0),
      turn: 101,
      results: 100,
      usage: { ...totalsOf(0).usage, totalTokens: 5_000_000_000 },
    };
    await submit(
      store,
      { id: 'run-1', createdAt: at, activeMs: 4_294_967_297, budgetMaxTotalTokens: big, deadlineAt: big },
      { totals },
    );
    const run = await loaded(store, 'run-1');
    sameJson(
      [run.createdAt, run.activeMs, run.budgetMaxTotalTokens, run.deadlineAt],
      [at, 4_294_967_297, big, big],
      'numbers',
    );
    sameJson(run.totals, totals, 'totals');
  }),

  storeCase('STO-2', 'a value of 5 MB is stored exactly, in an entry and as output', async ({ store, reopen }) => {
    const large = '0123456789 \u00e9\ud83d\udd11"\\\n'.repeat(300_000);
    assert.ok(Buffer.byteLength(large) > 5_000_000);
    await running(store);
    await appendNotes(store, 'run-1', 1, [{ large }, 'small']);
    await change(store, 'run-1', { status: 'completed', output: large });
    const reader = await reopen();
    const [entry, small] = notesOf(await journal(reader, 'run-1'));
    assert.ok((entry as { large?: string }).large === large, 'the entry is as it was given');
    assert.equal(small, 'small');
    assert.ok((await loaded(reader, 'run-1')).output === large, 'the output is as it was given');
  }),

  storeCase('JRN-9', 'a value nested 128 deep is stored exactly', async ({ store }) => {
    await running(store);
    await appendNotes(store, 'run-1', 1, [nested(120)]);
    await change(store, 'run-1', { output: nested(128) }, [note(nested(120))]);
    sameJson(notesOf(await journal(store, 'run-1')), [nested(120), nested(120)], 'entries');
    sameJson((await loaded(store, 'run-1')).output, nested(128), 'the output');
  }),

  storeCase(
    'STO-2',
    'what was given to the store may be changed afterwards without changing what is stored',
    async ({ store }) => {
      const metadata = { tier: 'gold' };
      const roles = ['support'];
      const first = { a: [1] };
      const { run } = await submit(
        store,
        { id: 'run-1', sessionId: 'session-1', metadata, actor: { id: 'alice', roles } },
        { entries: [note(first)] },
      );
      const kept = structuredClone(run);
      const offers = [{ agent: 'support', version: '1', hash: 'hash-1' }];
      await beat(store, 'worker-1', LONG_LEASE_MS, offers);
      metadata.tier = 'lead';
      roles.push('admin');
      first.a.push(2);
      offers[0] = { agent: 'changed', version: '9', hash: 'hash-9' };
      const output = { deep: { list: [1] } };
      const totals = totalsOf(1);
      const entry = { b: [1] };
      const asked = anInteraction();
      await store.transition({
        runId: 'run-1',
        decide: () => ({
          result: null,
          run: { change: { status: 'running', attempt: 1, output }, entries: [note(entry)], totals },
          interactions: [asked],
        }),
      });
      output.deep.list.push(2);
      entry.b.push(2);
      totals.results = 99;
      totals.usage.totalTokens = 99;
      (asked.arguments as JsonObject)['amountCents'] = 1;
      const third = { c: [1] };
      const batch = { runId: 'run-1', attempt: 1, firstSequence: 3, entries: [note(third)], totals: totalsOf(2) };
      await store.append(batch);
      third.c.push(2);
      batch.totals.results = 98;
      batch.entries.push(note('x'));

      const now = await loaded(store, 'run-1');
      sameJson([now.metadata, now.actor, now.output], [kept.metadata, kept.actor, { deep: { list: [1] } }], 'the run');
      assert.equal(now.totals.results, 2);
      assert.equal(now.sequence, 3);
      sameJson(notesOf(await journal(store, 'run-1')), [{ a: [1] }, { b: [1] }, { c: [1] }], 'entries');
      sameJson((await store.interactions({ limit: 1 })).items, [anInteraction()], 'the interaction');
      sameJson((await store.liveWorkers())[0]?.offers, [{ agent: 'support', version: '1', hash: 'hash-1' }], 'offers');
    },
  ),

  storeCase('STO-2', 'what the store gave may be changed without changing what is stored', async ({ store }) => {
    const made = await submit(
      store,
      { id: 'run-1', sessionId: 'session-1', metadata: { tier: 'gold' } },
      { entries: [note({ a: [1] })] },
    );
    await submit(store, { id: 'run-2', sessionId: 'session-1' });
    await ask(store, [anInteraction()]);
    await beat(store, 'worker-1');
    const before = await everything(store);
    spoil(made);
    spoil(await everything(store));
    const seen: unknown[] = [];
    const done = await store.transition({
      runId: 'run-1',
      session: true,
      decide: (locked) => {
        seen.push(structuredClone(locked));
        spoil(locked);
        return { result: null };
      },
    });
    if (done.outcome === 'done') spoil(done.run);
    await submit(store, { id: 'run-1', requestScope: 'run:run-1', requestId: 'run-1' }).then(spoil);
    await store
      .create({
        runId: 'run-1',
        sessionId: 'session-1',
        requestScope: 'run:run-1',
        requestId: 'run-1',
        decide: (situation) => {
          seen.push(structuredClone(situation));
          spoil(situation);
          throw new Error('spoiled');
        },
      })
      .catch(() => undefined);
    assert.equal(seen.length, 2);
    sameJson(await everything(store), before, 'everything in the store');
  }),
];

/** All that a store gives out about the small world of a case. */
async function everything(store: RunStore): Promise<unknown> {
  return {
    loaded: [await loaded(store, 'run-1'), await loaded(store, 'run-2')],
    read: await store.readJournal('run-1', 0, 10),
    listed: await store.list({ limit: 10 }),
    interactions: await store.interactions({ limit: 10 }),
    session: await store.session('session-1'),
    workers: await store.liveWorkers(),
  };
}

/** Overwrites every value reachable from an object, as careless code might. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    spoil(inner);
    if (Array.isArray(inner)) inner.push('spoiled');
    else if (typeof inner !== 'object') (value as Record<string, unknown>)[key] = 'spoiled';
  }
  if (!Array.isArray(value)) (value as Record<string, unknown>)['spoiled'] = true;
}
