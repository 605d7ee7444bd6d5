import { afterEach, describe, expect, it } from '@jest/globals';
import type { ToolResolution } from '../../lib/contracts/run-requests.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

/** A run with `count` manual calls that a crash left uncertain. */
async function blocked(count: number, options: ToolOptions = {}) {
  const store = new MemoryRunStore();
  const script = [{ calls: Array.from({ length: count }, (_, n) => ({ name: 'pay', args: { n } })) }, { text: 'done' }];
  const paid: unknown[] = [];
  const pay = (hangs: boolean) =>
    tool(
      'pay',
      ({ n }, { attempt }) => (paid.push({ n, attempt }), hangs ? new Promise(() => undefined) : `paid ${n}`),
      {
        recovery: 'manual',
        ...options,
      },
    );
  const first = await mortalEngine(store, agent(scriptedModel(script), [pay(true)]));
  const run = await first.runs.start({ agent: 'support', prompt: 'pay' });
  await until(() => paid.length === count);
  await first.crash();
  const model = scriptedModel(script, { place: 'transcript' });
  const engine = await engineOver(store, agent(model, [pay(false)]));
  expect((await engine.runs.result(run.id)).status).toBe('needs_attention');
  const resolve = (key: string, resolution: object, more: object = { by: 'ann' }) =>
    engine.runs.resolveTool(run.id, { key, ...resolution, ...more } as ToolResolution);
  return { store, engine, model, paid, id: run.id, resolve };
}

describe('resolving an uncertain call', () => {
  it('JRN-10: by the output somebody looked up: recorded with who, reconciled, and the run goes on by itself', async () => {
    const { store, engine, model, paid, id, resolve } = await blocked(1);
    const run = await resolve('r1.m1.t0', { output: { receipt: 7 } }, { by: 'ann', note: 'seen in the ledger' });
    expect(['pending', 'running', 'completed']).toContain(run.status);
    expect(await engine.runs.result(id)).toMatchObject({ status: 'completed' });
    expect(await entriesOf(store, id, 'tool.resolved')).toMatchObject([
      {
        key: 'r1.m1.t0',
        by: 'ann',
        note: 'seen in the ledger',
        reconciled: true,
        resolution: { output: { receipt: 7 } },
      },
    ]);
    expect(await entriesOf(store, id, 'run.resumed')).toMatchObject([
      { cause: 'recovered' },
      { cause: 'resolved', by: 'ann' },
    ]);
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({
      content: [{ outcome: 'success', output: { receipt: 7 } }],
    });
    expect(paid).toHaveLength(1);
  });

  it('JRN-10: by an error in words for the model', async () => {
    const { engine, model, paid, id, resolve } = await blocked(1);
    await resolve('r1.m1.t0', { error: { message: 'the bank refused' } });
    expect((await engine.runs.result(id)).status).toBe('completed');
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({
      content: [{ outcome: 'error', output: 'the bank refused' }],
    });
    expect(paid).toHaveLength(1);
  });

  it('JRN-10: by notHappened: it runs again under the same operation id', async () => {
    const { engine, model, paid, id, resolve } = await blocked(1);
    await resolve('r1.m1.t0', { notHappened: true });
    expect((await engine.runs.result(id)).status).toBe('completed');
    expect(paid).toEqual([
      { n: 0, attempt: 1 },
      { n: 0, attempt: 2 },
    ]);
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({ content: [{ output: 'paid 0' }] });
  });

  it('JRN-10: takes the full operation id as well', async () => {
    const { engine, id, resolve } = await blocked(1);
    await resolve(`${id}/r1.m1.t0`, { output: null });
    expect((await engine.runs.result(id)).status).toBe('completed');
  });

  it('JRN-10: several in any order; the run goes on when none is left (decision people-settle-what-is-unknown)', async () => {
    const { store, engine, model, paid, id, resolve } = await blocked(3);
    expect((await engine.runs.get(id)).attention).toMatchObject({
      operationKey: 'r1.m1.t0',
      operations: ['r1.m1.t0', 'r1.m1.t1', 'r1.m1.t2'],
    });
    expect(await resolve('r1.m1.t2', { output: 'third' })).toMatchObject({
      status: 'needs_attention',
      attention: { operationKey: 'r1.m1.t0', operations: ['r1.m1.t0', 'r1.m1.t1'] },
    });
    expect(await resolve('r1.m1.t0', { notHappened: true })).toMatchObject({
      status: 'needs_attention',
      attention: { operationKey: 'r1.m1.t1', operations: ['r1.m1.t1'] },
    });
    expect(paid).toHaveLength(3);
    await resolve('r1.m1.t1', { error: { message: 'refused' } });
    expect((await engine.runs.result(id)).status).toBe('completed');
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({
      content: [{ output: 'paid 0' }, { outcome: 'error', output: 'refused' }, { output: 'third' }],
    });
    expect(paid).toHaveLength(4);
    expect((await rowOf(store, id)).totals.results).toBe(5);
  });

  const wrong = ['r1.m1.t1', 'r1.m1', 'r2.m1.t0', '__proto__', 'other-run/r1.m1.t0', 'constructor'];

  it.each(wrong)('JRN-10: the key %s, which is not blocked, is a conflict that names those that are', async (key) => {
    const { store, id, resolve } = await blocked(1);
    const before = await journalOf(store, id);
    await expect(resolve(key, { output: 1 })).rejects.toMatchObject({
      code: 'OPERATION_CONFLICT',
      details: { operations: ['r1.m1.t0'] },
    });
    expect(await journalOf(store, id)).toEqual(before);
  });

  it('JRN-10: the same call twice is a conflict', async () => {
    const { resolve } = await blocked(2);
    await resolve('r1.m1.t0', { output: 1 });
    await expect(resolve('r1.m1.t0', { output: 1 })).rejects.toMatchObject({ code: 'OPERATION_CONFLICT' });
  });

  it('JRN-10: of two people at once one settles it', async () => {
    const { engine, store, id, resolve } = await blocked(1);
    const answers = await Promise.allSettled([
      resolve('r1.m1.t0', { output: 'a' }),
      resolve('r1.m1.t0', { output: 'b' }),
    ]);
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await engine.runs.result(id);
    expect(await entriesOf(store, id, 'tool.resolved')).toHaveLength(1);
  });

  it("JRN-10: an output is checked against the tool's output schema", async () => {
    const { store, id, resolve } = await blocked(1, {
      checkOutput: (output) => (typeof output === 'string' ? [] : ['must be text']),
    });
    await expect(resolve('r1.m1.t0', { output: 7 })).rejects.toMatchObject({
      code: 'INVALID_ANSWER',
      details: { problems: ['must be text'] },
    });
    expect((await rowOf(store, id)).status).toBe('needs_attention');
    await resolve('r1.m1.t0', { output: 'seven' });
  });

  it('RUN-1: a run that needs no attention has nothing to resolve', async () => {
    const engine = await engineOver(new MemoryRunStore(), agent(scriptedModel([{ text: 'done' }])));
    const run = await engine.runs.startAndWait({ agent: 'support', prompt: 'x' });
    await expect(engine.runs.resolveTool(run.id, { key: 'r1.m1.t0', output: 1, by: 'ann' })).rejects.toMatchObject({
      code: 'ILLEGAL_TRANSITION',
    });
    await expect(engine.runs.resolveTool('nobody', { key: 'r1.m1.t0', output: 1, by: 'ann' })).rejects.toMatchObject({
      code: 'RUN_NOT_FOUND',
    });
  });

  const bad: [what: string, resolution: unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['no key', { output: 1, by: 'ann' }],
    ['an empty key', { key: '', output: 1, by: 'ann' }],
    ['nobody who says so', { key: 'r1.m1.t0', output: 1 }],
    ['an empty by', { key: 'r1.m1.t0', output: 1, by: '' }],
    ['no way', { key: 'r1.m1.t0', by: 'ann' }],
    ['two ways', { key: 'r1.m1.t0', by: 'ann', output: 1, notHappened: true }],
    ['notHappened that is not true', { key: 'r1.m1.t0', by: 'ann', notHappened: false }],
    ['an error without a message', { key: 'r1.m1.t0', by: 'ann', error: {} }],
    ['an error that is text', { key: 'r1.m1.t0', by: 'ann', error: 'boom' }],
    ['an output without a JSON form', { key: 'r1.m1.t0', by: 'ann', output: new Map() }],
    ['a note that is a number', { key: 'r1.m1.t0', by: 'ann', output: 1, note: 5 }],
  ];

  it.each(bad)('JRN-10: a resolution with %s is refused and changes nothing', async (_, resolution) => {
    const { engine, store, id } = await blocked(1);
    const before = await journalOf(store, id);
    await expect(engine.runs.resolveTool(id, resolution as ToolResolution)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    expect(await journalOf(store, id)).toEqual(before);
  });

  it('JRN-10: is durable: it counts in whatever process goes on', async () => {
    const { store, engine, id, resolve, paid } = await blocked(2);
    await resolve('r1.m1.t0', { output: 'one' });
    await engine.stop();
    const reader = await engineOver(
      store,
      agent(scriptedModel([]), [tool('pay', () => 'never', { recovery: 'manual' })]),
      { worker: false },
    );
    await expect(reader.runs.resolveTool(id, { key: 'r1.m1.t1', output: 'two', by: 'bob' })).resolves.toMatchObject({
      status: 'pending',
    });
    const model = scriptedModel([{ calls: [] }, { text: 'done' }], { place: 'transcript' });
    const third = await engineOver(store, agent(model, [tool('pay', () => 'never', { recovery: 'manual' })]));
    expect((await third.runs.result(id)).status).toBe('completed');
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({ content: [{ output: 'one' }, { output: 'two' }] });
    expect(paid).toHaveLength(2);
  });
});
