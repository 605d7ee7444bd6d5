import { afterEach, describe, expect, it } from '@jest/globals';
import type { JsonValue } from '../../lib/contracts/json.js';
import type { RecoveryPolicy } from '../../lib/contracts/policies.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const script: Scripted[] = [{ calls: [{ name: 'work' }] }, { text: 'done' }];

async function returning(value: () => unknown, recovery: RecoveryPolicy = 'safe', options = {}) {
  const store = new MemoryRunStore();
  const model = scriptedModel(script, { strict: ['results', 'ids'] });
  let executions = 0;
  const work = tool('work', () => (executions++, value()), { recovery });
  const engine = await engineOver(store, agent(model, [work]), options);
  const run = await engine.runs.startAndWait(start);
  return { store, model, engine, run, executions: () => executions };
}

const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;

describe('what a tool returns', () => {
  const values: [what: string, value: () => unknown, stored: JsonValue][] = [
    ['an object', () => ({ a: { b: [1, null, 'x'] } }), { a: { b: [1, null, 'x'] } }],
    ['nothing', () => undefined, null],
    ['a promise of nothing', () => Promise.resolve(undefined), null],
    ['null', () => null, null],
    ['an empty text', () => '', ''],
    ['zero', () => 0, 0],
    ['false', () => false, false],
    ['a text that looks like JSON', () => '{"a":1}', '{"a":1}'],
    ['a number as text', () => '123', '123'],
    ['a date', () => new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a big integer', () => 2n ** 64n, '18446744073709551616'],
    ['not-a-number', () => ({ n: Number.NaN }), { n: null }],
    ['an undefined field', () => ({ a: undefined, b: 1 }), { b: 1 }],
    ['odd text', () => 'a\u0000b 👍🏽 \ud83d \u2028', 'a\u0000b 👍🏽 \ud83d \u2028'],
    ['five megabytes', () => 'x'.repeat(5_000_000), 'x'.repeat(5_000_000)],
  ];

  it.each(values)(
    'JRN-9: %s is one value for the model, the journal, its readers and a restart (B106, B109)',
    async (_, value, stored) => {
      const { model, store, run, engine } = await returning(value, 'manual');
      expect(run.status).toBe('completed');
      const [result] = await entriesOf(store, run.id, 'tool.completed');
      expect(result?.output).toEqual(stored);
      expect(model.requests[1]?.messages.at(-1)).toMatchObject({ content: [{ outcome: 'success', output: stored }] });
      const [completed] = await entriesOf(store, run.id, 'tool.completed');
      // A page ends early when its entries are large, so the event is asked for by its place.
      const page = await engine.runs.events(run.id, { after: (completed?.sequence ?? 0) - 1, limit: 1 });
      expect(page.events).toMatchObject([{ type: 'tool.completed', data: { output: stored } }]);
      const fresh = await engineOver(store, agent(scriptedModel([])), { worker: false });
      expect((await fresh.runs.messages(run.id)).at(-2)).toEqual(model.requests[1]?.messages.at(-1));
      expect((await fresh.runs.snapshot(run.id)).operations[1]?.output).toEqual(stored);
    },
  );

  it('JRN-9: what was lost on the way is noted', async () => {
    const { store, run } = await returning(() => ({ a: Number.NaN, b: Number.POSITIVE_INFINITY }));
    expect((await entriesOf(store, run.id, 'tool.completed'))[0]?.notes).toEqual([
      expect.stringContaining('$.a'),
      expect.stringContaining('$.b'),
    ]);
  });

  it('JRN-9: is fixed when it is returned: what the tool does to it afterwards changes nothing', async () => {
    const kept = { n: 0 };
    const model = scriptedModel([...script.slice(0, 1), ...script]);
    const work = tool('work', () => ((kept.n += 1), kept));
    const engine = await engineOver(new MemoryRunStore(), agent(model, [work]));
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    const results = model.requests[2]?.messages.filter(({ role }) => role === 'tool');
    expect(results).toMatchObject([{ content: [{ output: { n: 1 } }] }, { content: [{ output: { n: 2 } }] }]);
  });

  it('B110: __proto__ in a result stays an own key and changes no prototype', async () => {
    const { store, run } = await returning(() => JSON.parse('{"__proto__":{"isAdmin":true},"a":1}') as unknown);
    const [result] = await entriesOf(store, run.id, 'tool.completed');
    expect(Object.keys(result?.output ?? {})).toEqual(['__proto__', 'a']);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });
});

describe('what a tool returns that has no JSON form', () => {
  const formless: [what: string, value: () => unknown, path: string][] = [
    ['a Map', () => ({ found: new Map() }), '$.found'],
    ['a cycle', () => cyclic, '$.self'],
    ['a symbol', () => [Symbol('x')], '$[0]'],
    ['a function', () => () => 1, '$'],
    [
      'a getter that throws',
      () => ({
        get a() {
          throw new Error('no');
        },
      }),
      '$.a',
    ],
    ['more than maxPayloadBytes', () => 'x'.repeat(2_000), '$'],
  ];
  const limit = { maxPayloadBytes: 1_000 };

  it.each(formless)('JRN-9: %s of a safe tool is an error result that says where', async (_, value, path) => {
    const { store, run, model } = await returning(value, 'safe', limit);
    expect(run.status).toBe('completed');
    expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([
      { outcome: 'error', error: { code: 'UNSERIALISABLE_RESULT', message: expect.stringContaining(path) } },
    ]);
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ content: [{ outcome: 'error' }] });
  });

  it.each(
    (['manual', 'inform', 'probe', 'idempotent'] as const).flatMap((policy) =>
      formless.map(([what, value, path]) => [policy, what, value, path] as const),
    ),
  )(
    'JRN-9: of a tool that is %s, %s needs a person: its effect may have happened',
    async (policy, _what, value, path) => {
      const { run, engine, executions } = await returning(value, policy, limit);
      expect(run).toMatchObject({
        status: 'needs_attention',
        attention: { reason: 'unserialisable_result', operationKey: 'r1.m1.t0', detail: expect.stringContaining(path) },
      });
      await engine.runs.resume(run.id);
      expect((await engine.runs.result(run.id)).status).toBe('needs_attention');
      expect(executions()).toBe(1);
      await engine.runs.resolveTool(run.id, { key: 'r1.m1.t0', output: 'looked up', by: 'ann' });
      expect((await engine.runs.result(run.id)).status).toBe('completed');
      expect(executions()).toBe(1);
    },
  );
});

describe('what a tool throws', () => {
  const thrown: [what: string, value: unknown, output: RegExp][] = [
    ['an error', new Error('no stock'), /^no stock$/],
    ['text', 'just text', /^just text$/],
    ['undefined', undefined, /./],
    ['null', null, /./],
    ['an object', { message: 'like an error', secret: 'canary' }, /^like an error$/],
    ['an error without a message', new Error(''), /./],
    ['an error with a cause', new Error('outer', { cause: new Error('canary') }), /^outer$/],
    ['a very long error', new Error('x'.repeat(100_000)), /^x{1000,}/],
  ];

  it.each(thrown)('MOD-4: %s is an error result in words, with chosen facts only (B165)', async (_, value, output) => {
    const { model, run, store } = await returning(() => {
      throw value;
    }, 'manual');
    expect(run.status).toBe('completed');
    const [failed] = await entriesOf(store, run.id, 'tool.failed');
    expect(failed?.error.message).toMatch(output);
    expect(failed?.error.message.length).toBeLessThan(5_000);
    expect(JSON.stringify([failed, model.requests])).not.toContain('canary');
  });

  it("JRN-2: an error of this package that a tool lets out is the tool's own: it neither fences its run nor stops its worker", async () => {
    const { FencedError } = await import('../../lib/errors/store.errors.js');
    const { BrokenStoreError } = await import('../../lib/errors/store.errors.js');
    const { JournalCorruptError } = await import('../../lib/errors/store.errors.js');
    for (const error of [
      new FencedError('of another'),
      new BrokenStoreError('of another'),
      new JournalCorruptError('of another'),
    ]) {
      const { run, engine, store } = await returning(() => {
        throw error;
      }, 'manual');
      expect(run.status).toBe('completed');
      expect(engine.worker.status().state).toBe('ready');
      expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([{ error: { message: 'of another' } }]);
    }
  });
});
