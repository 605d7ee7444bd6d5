import { afterEach, describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { CrashExplorer, type StoreCommit } from '../../lib/testing/crash-explorer.store.js';
import { agent, engineOver, stopEngines } from '../support/engine-harness.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

describe('what steering costs', () => {
  it('JRN-3: a message taken in at the end of a turn is looked for once, and costs no commit of its own', async () => {
    const seen: StoreCommit[] = [];
    const store = new CrashExplorer(new MemoryRunStore(), { before: (commit) => seen.push(commit) });
    const spoken = signal();
    const model = scriptedModel([{ text: 'nearly done', after: spoken.promise }, { text: 'done' }]);
    const engine = await engineOver(store, agent(model));
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    await model.requested(1);
    await engine.runs.steer(run.id, 'one more thing', { sender: 'ann' });
    spoken.resolve();
    expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed', output: 'done' });

    expect(seen.map(({ kind, entries }) => [kind, ...entries.map(({ type }) => type)])).toEqual([
      ['create', 'run.submitted', 'run.started', 'model.started'],
      ['transition'],
      ['transition', 'model.completed', 'run.steered'],
      ['append', 'model.started'],
      ['transition', 'model.completed', 'run.completed'],
    ]);
  });
});
