import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';
import { beat, submit } from '../../../packages/contract/lib/scenario.js';

describe('A MemoryRunStore', () => {
  it('says what it is', () => {
    expect(new MemoryRunStore().traits).toEqual({ name: 'memory', durable: false, shared: false, transactions: false });
  });

  it('JRN-5b: has no transactions, neither for tools nor for hosts', async () => {
    const store = new MemoryRunStore();
    expect(() => store.openToolTransaction()).toThrow(/memory store has no transactions/);
    const decide = () => {
      throw new Error('not asked');
    };
    const request = { runId: 'r', sessionId: null, requestScope: 's', requestId: 'r', decide, transaction: {} };
    await expect(store.create(request)).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
  });

  it('I12: judges by the clock it is given', async () => {
    let now = 1_000;
    const store = new MemoryRunStore({ clock: () => now });
    await expect(beat(store, 'worker-1', 500)).resolves.toEqual({ now: 1_000, leaseExpiresAt: 1_500 });
    now = 1_499;
    await expect(store.liveWorkers()).resolves.toHaveLength(1);
    now = 1_500;
    await expect(store.liveWorkers()).resolves.toEqual([]);
  });

  it('keeps what it was told when it is closed, for nothing else could', async () => {
    const store = new MemoryRunStore();
    await store.open();
    await submit(store, { id: 'run-1' });
    await store.close();
    await store.open();
    await expect(store.load('run-1')).resolves.not.toBeNull();
  });
});
