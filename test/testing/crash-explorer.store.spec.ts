import { afterEach, describe, expect, it } from '@jest/globals';
import type { AppendRequest, ToolTransaction } from '../../lib/contracts/ports/run-store.port.js';
import { StoreUnavailableError } from '../../lib/errors/store.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { CrashExplorer, type CommitHooks, type StoreCommit } from '../../lib/testing/crash-explorer.store.js';
import { runContract } from '../contract/run-contract.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';

afterEach(stopEngines);

const script = [{ calls: [{ name: 'work' }] }, { text: 'done' }];

/** Commits as `number kind`. */
function seenBy(record: string[]): CommitHooks {
  const note =
    (side: string) =>
    ({ number, kind }: StoreCommit) =>
      void record.push(`${side} ${number} ${kind}`);
  return { before: note('before'), after: note('after') };
}

describe('CrashExplorer', () => {
  it('tells of each commit of a run before and after it, numbered from 1', async () => {
    const record: string[] = [];
    const store = new CrashExplorer(new MemoryRunStore(), seenBy(record));
    const engine = await engineOver(store, agent(scriptedModel(script), [tool('work', () => 'worked')]));
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed' });
    expect(record).toEqual([
      'before 1 create',
      'after 1 create',
      'before 2 append',
      'after 2 append',
      'before 3 append',
      'after 3 append',
      'before 4 transition',
      'after 4 transition',
    ]);
    expect(store.commits).toBe(4);
  });

  it('tells nothing of transitions that write nothing, of reads and of heartbeats', async () => {
    const record: string[] = [];
    const inner = new MemoryRunStore();
    const engine = await engineOver(inner, agent(scriptedModel([{ text: 'done' }])));
    const run = await engine.runs.startAndWait({ agent: 'support', prompt: 'go' });
    const store = new CrashExplorer(inner, seenBy(record));
    await store.transition({ runId: run.id, decide: ({ run: locked }) => ({ result: locked.status }) });
    await store.heartbeat({ workerId: 'w', leaseMs: 1_000, startedAt: 0, offers: [] });
    await store.readJournal(run.id, 0, 10);
    expect(record).toEqual([]);
  });

  it('fails a commit whose first hook throws, with nothing written', async () => {
    const inner = new MemoryRunStore();
    const store = new CrashExplorer(inner, {
      before: ({ kind }) => {
        if (kind === 'create') throw new StoreUnavailableError('not now');
      },
    });
    const engine = await engineOver(store, agent(scriptedModel(script)));
    await expect(engine.runs.start({ agent: 'support', prompt: 'go', runId: 'run-1' })).rejects.toThrow('not now');
    expect(await inner.load('run-1')).toBeNull();
  });

  it('loses the answer of a commit whose second hook throws, and the run goes on from what was written', async () => {
    let lost = 0;
    const store = new CrashExplorer(new MemoryRunStore(), {
      after: ({ number }) => {
        if (number === 2 && lost++ === 0) throw new StoreUnavailableError('the answer was lost');
      },
    });
    let ran = 0;
    const engine = await engineOver(store, agent(scriptedModel(script), [tool('work', () => ++ran)]));
    const run = await engine.runs.startAndWait({ agent: 'support', prompt: 'go' });
    expect([run.status, lost, ran]).toEqual(['completed', 1, 1]);
  });

  it('tells of a tool transaction around its commit', async () => {
    const record: string[] = [];
    class Transactions extends MemoryRunStore {
      override openToolTransaction(): ToolTransaction {
        return {
          begin: async () => void record.push('begin'),
          enter: (body) => body(),
          commit: async ({ entries }: AppendRequest) => void record.push(`commit ${entries.length}`),
          rollback: async () => void record.push('rollback'),
          isConflict: () => false,
        };
      }
    }
    const transaction = new CrashExplorer(new Transactions(), seenBy(record)).openToolTransaction();
    await transaction.begin();
    expect(transaction.enter?.(() => 7)).toBe(7);
    const totals = { turn: 0, results: 0, usage: { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 } };
    const entries = [{ type: 'run.completed', at: 1 }];
    await transaction.commit({ runId: 'run-1', attempt: 1, firstSequence: 4, entries, totals } as AppendRequest);
    await transaction.rollback();
    expect(record).toEqual(['begin', 'before 1 tool', 'commit 1', 'after 1 tool', 'rollback']);
  });

  it('tells of a run that a transaction of the host creates when that has committed', async () => {
    const record: string[] = [];
    let commitHost: () => void = () => undefined;
    class Joining extends MemoryRunStore {
      override async create({ onVisible, transaction: _, ...request }: Parameters<MemoryRunStore['create']>[0]) {
        const result = await super.create(request);
        commitHost = () => onVisible?.();
        return result;
      }
    }
    const store = new CrashExplorer(new Joining(), seenBy(record));
    const engine = await engineOver(store, agent(scriptedModel([{ text: 'done' }])), { worker: false });
    await engine.runs.start({ agent: 'support', prompt: 'go' }, { transaction: {} });
    expect(record).toEqual(['before 1 create']);
    commitHost();
    expect(record).toEqual(['before 1 create', 'after 1 create']);
  });
});

runContract('CrashExplorer over MemoryRunStore', () => {
  const store = new CrashExplorer(new MemoryRunStore(), {});
  return Promise.resolve({ store, reopen: () => Promise.resolve(store), dispose: () => store.close() });
});
