// Decision one-connection-of-sqlite: SQLite has one connection, which belongs to a transactional tool until its method returns.
import { afterEach, describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { ENGINE_STORES, type SharedStore } from '../support/stores.js';

const sqlite = ENGINE_STORES.find(({ name }) => name === 'SQLite');
let open: SharedStore | undefined;

afterEach(async () => {
  await stopEngines();
  await open?.dispose();
});

describe('a transactional tool on SQLite', () => {
  it('JRN-5b: that writes to its own store is told so at once, and the run goes on', async () => {
    open = await sqlite?.open();
    if (!open) throw new Error('no SQLite store to test on');
    const model = scriptedModel([{ calls: [{ name: 'note' }] }, { text: 'done' }]);
    const note = tool('note', () => engine.runs.cancel(run.id), { recovery: 'transactional' });
    const engine = await engineOver(open.store, agent(model, [note]));
    const run = await engine.runs.start({ agent: 'support', prompt: 'write a note' });
    expect(await engine.runs.result(run.id, { timeout: '4s' })).toMatchObject({ status: 'completed', output: 'done' });
    const told = model.requests[1]?.messages.at(-1);
    expect(told).toMatchObject({
      content: [{ outcome: 'error', output: expect.stringContaining('do it outside the tool') }],
    });
  });

  it('JRN-5b: may read its own runs from inside', async () => {
    open = await sqlite?.open();
    if (!open) throw new Error('no SQLite store to test on');
    const model = scriptedModel([{ calls: [{ name: 'look' }] }, { text: 'done' }]);
    const look = tool('look', async () => (await engine.runs.get(run.id)).status, { recovery: 'transactional' });
    const engine = await engineOver(open.store, agent(model, [look]));
    const run = await engine.runs.start({ agent: 'support', prompt: 'look' });
    expect(await engine.runs.result(run.id, { timeout: '4s' })).toMatchObject({ status: 'completed' });
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ content: [{ outcome: 'success', output: 'running' }] });
  });
});
