import { afterEach, describe, expect, it } from '@jest/globals';
import type { SequencedEntry } from '../../lib/contracts/journal-entry.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { signal } from '../support/signal.js';
import { TamperedStore } from '../support/tampered-store.js';

afterEach(stopEngines);

type Tamper = (entry: SequencedEntry) => SequencedEntry;

/** A run that a crash cut in the second turn, inside its tool; its journal is then changed behind the engine's back. */
async function tampered(tamper: Tamper) {
  const inner = new MemoryRunStore();
  const calls = (n: number) => ({ calls: [{ name: 'work', args: { n } }] });
  const script = [calls(1), calls(2), { text: 'done' }];
  const entered = signal();
  const executed: unknown[] = [];
  const work = (hangs: boolean) =>
    tool('work', ({ n }) => {
      executed.push(n);
      if (n !== 2 || !hangs) return n;
      entered.resolve();
      return new Promise(() => undefined);
    });
  const first = await mortalEngine(inner, agent(scriptedModel(script), [work(true)]));
  const run = await first.runs.start({ agent: 'support', prompt: 'hello' });
  await entered.promise;
  await first.crash();
  const store = new TamperedStore(inner, (entries, { id }) => (id === run.id ? entries.map(tamper) : entries));
  const model = scriptedModel(script, { place: 'transcript' });
  const engine = await engineOver(store, agent(model, [work(false)]));
  return { ended: await engine.runs.result(run.id), engine, model, executed };
}

const edits: [what: string, key: string, tamper: Tamper][] = [
  [
    'the prompt',
    'r1.m1',
    (entry) =>
      entry.type === 'run.submitted'
        ? { ...entry, messages: [{ role: 'user', content: [{ type: 'text', text: 'another prompt' }] }] }
        : entry,
  ],
  [
    'an earlier result',
    'r1.m2',
    (entry) => (entry.type === 'tool.completed' ? { ...entry, output: 'rewritten' } : entry),
  ],
  [
    'the arguments of the call that is under way',
    'r1.m2.t0',
    (entry) =>
      entry.type === 'model.completed' && entry.key === 'r1.m2'
        ? {
            ...entry,
            message: {
              ...entry.message,
              content: entry.message.content.map((part) =>
                part.type === 'tool-call' ? { ...part, arguments: { n: 99 } } : part,
              ),
            },
          }
        : entry,
  ],
];

describe('a journal that was changed behind the engine', () => {
  it('JRN-8: unchanged, it simply goes on', async () => {
    const { ended, executed } = await tampered((entry) => entry);
    expect(ended.status).toBe('completed');
    expect(executed).toEqual([1, 2, 2]);
  });

  it.each(edits)(
    'JRN-8: in %s → attention naming the operation; nothing is called with what was never decided',
    async (_, key, tamper) => {
      const { ended, engine, model, executed } = await tampered(tamper);
      expect(ended).toMatchObject({
        status: 'needs_attention',
        attention: { reason: 'input_drift', operationKey: key, operations: [key] },
      });
      expect(model.requests).toEqual([]);
      expect(executed).toEqual([1, 2]);
      // Neither do resume and retry talk it out of that.
      await engine.runs.resume(ended.id);
      expect((await engine.runs.result(ended.id)).attention?.reason).toBe('input_drift');
      await engine.runs.retry(ended.id);
      expect((await engine.runs.result(ended.id)).attention?.reason).toBe('input_drift');
    },
  );

  it('JRN-8: the order of keys is no difference (B126)', async () => {
    const reversed = (value: unknown): unknown =>
      typeof value !== 'object' || value === null
        ? value
        : Array.isArray(value)
          ? value.map(reversed)
          : Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([key, item]) => [key, reversed(item)]),
            );
    const { ended } = await tampered((entry) => reversed(entry) as SequencedEntry);
    expect(ended.status).toBe('completed');
  });
});
