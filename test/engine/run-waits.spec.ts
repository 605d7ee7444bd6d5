// Tools that wait for other runs: what would stop a worker whose every slot is taken by a run that waits.
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import type { Run } from '../../lib/contracts/run-view.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, engineOver, stopEngines, tool, type TestEngine } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { ENGINE_STORES, type SharedStore } from '../support/stores.js';
import { until } from '../support/until.js';

/** An agent whose one tool does this. */
function asking(name: string, work: () => unknown, options: Parameters<typeof tool>[2] = {}): AgentDefinition {
  const model = scriptedModel([{ calls: [{ name: 'delegate' }] }, { text: `${name} is done` }], {
    place: 'transcript',
  });
  return agent(model, [tool('delegate', work, options)], { name });
}

function answering(name = 'inner', answer: () => Promise<unknown> = () => Promise.resolve()): AgentDefinition {
  const reply = async () => {
    await answer();
    return { text: 'the answer' };
  };
  return agent(scriptedModel([reply], { place: 'transcript' }), [], { name });
}

const start = (name: string) => ({ agent: name, prompt: 'go' });

describe.each(ENGINE_STORES)('a tool that waits for a run, on $name', ({ open, transactions }) => {
  let opened: SharedStore;
  let engine: TestEngine;
  beforeEach(async () => {
    opened = await open();
  });
  afterEach(async () => {
    await stopEngines();
    await opened.dispose();
  });

  const outputOf = async (waiting: Promise<Run>) => (await waiting).output;
  const resultTold = async (runId: string) => (await engine.runs.messages(runId)).find(({ role }) => role === 'tool');

  it.each([
    [2, 'startAndWait', () => outputOf(engine.runs.startAndWait(start('inner')))],
    [10, 'startAndWait', () => outputOf(engine.runs.startAndWait(start('inner')))],
    [10, 'start and result', async () => outputOf(engine.runs.result((await engine.runs.start(start('inner'))).id))],
  ])('SUB-7: takes no slot: %d of them on as many slots all get their answers by %s', async (slots, _how, work) => {
    engine = await engineOver(opened.store, [asking('outer', work), answering()], { maxConcurrentRuns: slots });
    // More than there are slots: what waits for a slot must not take those that were left to others.
    const started = Array.from({ length: slots + 3 }, () =>
      engine.runs.startAndWait(start('outer'), { timeout: '20s' }),
    );
    for (const run of await Promise.all(started)) {
      expect(run).toMatchObject({ status: 'completed', output: 'outer is done' });
      expect(await entriesOf(opened.store, run.id, 'tool.completed')).toMatchObject([{ output: 'the answer' }]);
    }
    expect(engine.worker.status()).toMatchObject({ state: 'ready', activeRuns: 0, waitingRuns: 0 });
  });

  it('SUB-7: takes no slot where the run it waits for waits itself', async () => {
    const outer = asking('outer', () => outputOf(engine.runs.startAndWait(start('middle'))));
    const middle = asking('middle', () => outputOf(engine.runs.startAndWait(start('inner'))));
    engine = await engineOver(opened.store, [outer, middle, answering()], { maxConcurrentRuns: 2 });
    const started = Array.from({ length: 4 }, () => engine.runs.startAndWait(start('outer'), { timeout: '20s' }));
    expect((await Promise.all(started)).map(({ output }) => output)).toEqual(Array(4).fill('outer is done'));
  });

  it('is counted by the status of the worker, and its slot is free for others', async () => {
    const gate = signal();
    const outer = asking('outer', () => outputOf(engine.runs.startAndWait(start('inner'))));
    const slow = answering('inner', () => gate.promise);
    engine = await engineOver(opened.store, [outer, slow], { maxConcurrentRuns: 2 });
    const run = await engine.runs.start(start('outer'));
    await until(() => engine.worker.status().waitingRuns === 1 && engine.worker.status().activeRuns === 2);
    expect(await engine.runs.start(start('inner'))).toMatchObject({ status: 'running' });
    expect(await engine.runs.start(start('inner'))).toMatchObject({ status: 'pending' });
    gate.resolve();
    expect(await engine.runs.result(run.id, { timeout: '20s' })).toMatchObject({ status: 'completed' });
  });

  it('waits no longer once its own run was cancelled; the other run goes on', async () => {
    const gate = signal();
    const left = signal<unknown>();
    const inner = signal<string>();
    const outer = asking('outer', async () => {
      const { id } = await engine.runs.start(start('inner'));
      inner.resolve(id);
      await engine.runs.result(id).then(left.resolve, left.resolve);
    });
    engine = await engineOver(opened.store, [outer, answering('inner', () => gate.promise)], { maxConcurrentRuns: 1 });
    const run = await engine.runs.start(start('outer'));
    await until(() => engine.worker.status().waitingRuns === 1 && engine.worker.status().activeRuns === 2);
    await engine.runs.cancel(run.id);
    expect(await left.promise).toBeInstanceOf(Error);
    await until(() => engine.worker.status().waitingRuns === 0);
    gate.resolve();
    expect(await engine.runs.result(await inner.promise, { timeout: '20s' })).toMatchObject({ status: 'completed' });
  });

  it('does not take a wait that a shutdown ends for the answer: the next process asks again', async () => {
    const gate = signal();
    const request = { ...start('inner'), requestId: 'the-question' };
    const outer = asking('outer', () => outputOf(engine.runs.startAndWait(request)), { recovery: 'idempotent' });
    const first = await engineOver(opened.store, [outer, answering('inner', () => gate.promise)], {
      maxConcurrentRuns: 1,
      shutdownTimeoutMs: 20,
    });
    engine = first;
    const run = await first.runs.start(start('outer'));
    await until(() => first.worker.status().waitingRuns === 1 && first.worker.status().activeRuns === 2);
    first.stopWaiting();
    const stopped = first.stop();
    gate.resolve();
    await stopped;
    engine = await engineOver(await opened.second(), [outer, answering()], { maxConcurrentRuns: 1 });
    expect(await engine.runs.result(run.id, { timeout: '20s' })).toMatchObject({ status: 'completed' });
    expect(await entriesOf(opened.store, run.id, 'tool.completed')).toMatchObject([{ output: 'the answer' }]);
    const { runs } = await engine.runs.list({ agent: 'inner' });
    expect(runs).toHaveLength(1);
  });

  it('is refused at once where it waits for its own run, or in a circle', async () => {
    const outer = asking('outer', () => outputOf(engine.runs.result(run.id)));
    engine = await engineOver(opened.store, outer, { maxConcurrentRuns: 1 });
    const run = await engine.runs.start({ ...start('outer') });
    expect(await engine.runs.result(run.id, { timeout: '20s' })).toMatchObject({ status: 'completed' });
    expect(JSON.stringify(await resultTold(run.id))).toContain('cannot wait for itself');
    await engine.stop();

    const other = { left: 'right', right: 'left' };
    const circle = (name: 'left' | 'right') => asking(name, () => outputOf(engine.runs.result(other[name])));
    engine = await engineOver(await opened.second(), [circle('left'), circle('right')], { maxConcurrentRuns: 1 });
    const both = Object.keys(other).map((name) => engine.runs.startAndWait({ ...start(name), runId: name }));
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual(['completed', 'completed']);
    const told = JSON.stringify([await resultTold('left'), await resultTold('right')]);
    expect(told.match(/which waits for it/g)).toHaveLength(1);
  });

  it('is refused where runs start runs without end', async () => {
    const endless = asking('endless', () => outputOf(engine.runs.startAndWait(start('endless'))));
    engine = await engineOver(opened.store, endless, { maxConcurrentRuns: 1 });
    const run = await engine.runs.startAndWait(start('endless'), { timeout: '20s' });
    expect(run).toMatchObject({ status: 'completed' });
    const { runs } = await engine.runs.list({ limit: 100 });
    expect(runs).toHaveLength(11);
    expect(JSON.stringify(await resultTold(runs[0]?.id as string))).toContain('Raise maxConcurrentRuns');
  });

  if (transactions)
    it('is refused in a transaction, before it has started anything', async () => {
      const work = () => outputOf(engine.runs.startAndWait(start('inner')));
      const outer = asking('outer', work, { recovery: 'transactional' });
      engine = await engineOver(opened.store, [outer, answering()]);
      const run = await engine.runs.startAndWait(start('outer'), { timeout: '20s' });
      expect(JSON.stringify(await resultTold(run.id))).toContain('its transaction would stay open');
      expect((await engine.runs.list({ agent: 'inner' })).runs).toEqual([]);
    });

  it('counts for no run where it is an observer that waits', async () => {
    const ended: string[] = [];
    engine = await engineOver(opened.store, answering(), { maxConcurrentRuns: 1 }, undefined, {
      observers: [
        {
          onEvent: ({ type, runId }) => {
            if (type === 'run.started') void engine.runs.result(runId).then(({ status }) => ended.push(status));
          },
        },
      ],
    });
    await engine.runs.startAndWait(start('inner'));
    await until(() => ended.length === 1);
    expect(ended).toEqual(['completed']);
  });
});
