import { afterEach, describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, entryTypes, stopEngines, tool } from '../support/engine-harness.js';

afterEach(stopEngines);

describe('the loop', () => {
  it('JRN-3: a run of one tool call takes its intents with its results and needs four commits', async () => {
    const model = scriptedModel([{ calls: [{ name: 'lookup', args: { id: 7 } }] }, { text: 'seven' }]);
    const engine = await engineOver(new MemoryRunStore(), agent(model, [tool('lookup', ({ id }) => ({ found: id }))]));
    const run = await engine.runs.startAndWait({ agent: 'support', prompt: 'look' });
    expect(run).toMatchObject({ status: 'completed', output: 'seven', turn: 2, usage: { totalTokens: 30 } });
    expect(await entryTypes(engine, run.id)).toEqual([
      'run.submitted',
      'run.started',
      'model.started',
      'model.completed',
      'tool.started',
      'tool.completed',
      'model.started',
      'model.completed',
      'run.completed',
    ]);
    expect(engine.logged).toEqual([]);
    expect((await engine.metrics.read()).journalRows).toBe(4);
  });

  it('JRN-5a: calls beyond toolConcurrency get their intents when their moment comes, and results go back in call order', async () => {
    const release: (() => void)[] = [];
    const model = scriptedModel([{ calls: [1, 2, 3].map((n) => ({ name: 'slow', args: { n } })) }, { text: 'done' }]);
    const slow = tool('slow', ({ n }) => new Promise((resolve) => release.push(() => resolve(n))));
    const engine = await engineOver(new MemoryRunStore(), agent(model, [slow], { toolConcurrency: 2 }));
    const run = await engine.runs.start({ agent: 'support', prompt: 'look' });
    while (release.length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect((await entryTypes(engine, run.id)).filter((type) => type === 'tool.started')).toHaveLength(2);
    release[1]?.();
    while (release.length < 3) await new Promise((resolve) => setImmediate(resolve));
    release[0]?.();
    release[2]?.();
    expect((await engine.runs.result(run.id)).status).toBe('completed');
    const results = model.requests[1]?.messages.at(-1);
    expect(results).toMatchObject({ role: 'tool', content: [{ output: 1 }, { output: 2 }, { output: 3 }] });
  });
});
