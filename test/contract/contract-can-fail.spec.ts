import type { StoreCase, StoreFactory } from '../../packages/contract/lib/store-case.js';
import { coreCases, sharedCases } from '../../packages/contract/lib/index.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { brokenStores } from './broken-stores.js';
import { runContract } from './run-contract.js';

const factoryOf = (make: () => MemoryRunStore): StoreFactory => {
  return () => {
    const store = make();
    return Promise.resolve({
      store,
      reopen: () => Promise.resolve(store),
      second: () => Promise.resolve(store),
      dispose: () => store.close(),
    });
  };
};

async function firstFailure(cases: readonly StoreCase[], open: StoreFactory): Promise<string | null> {
  for (const one of cases) {
    try {
      await one.run(open);
    } catch {
      return one.title;
    }
  }
  return null;
}

describe('The store contract', () => {
  it.each(brokenStores)('STO-9: notices a store that $fault, by $id', async ({ id, make }) => {
    const cases = coreCases.filter((one) => one.id === id);
    expect(await firstFailure(cases, factoryOf(make))).toEqual(expect.any(String));
  });

  it('STO-9: has one case a title, each named by a requirement', () => {
    const all = [...coreCases, ...sharedCases];
    expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
    expect(all.filter(({ id }) => !/^[A-Z]{3}-[A-Z]?\d+[a-z]?$/.test(id))).toEqual([]);
  });

  it('STO-9: covers what the specification lists', () => {
    const ids = new Set(coreCases.map(({ id }) => id));
    const listed = [
      'SUB-1',
      'SUB-2',
      'SUB-4',
      'SUB-5',
      'RUN-1',
      'OWN-1',
      'OWN-2',
      'PPL-3',
      'EVT-1',
      'STO-1',
      'STO-2',
      'STO-8',
    ];
    expect(listed.filter((id) => !ids.has(id))).toEqual([]);
  });

  it('STO-9: disposes of a store whose case failed', async () => {
    let disposed = 0;
    const store = new MemoryRunStore();
    const open: StoreFactory = () =>
      Promise.resolve({
        store: Object.assign(store, { load: () => Promise.reject(new Error('down')) }),
        reopen: () => Promise.resolve(store),
        dispose: () => Promise.resolve(void (disposed += 1)),
      });
    await expect(coreCases[0]?.run(open)).rejects.toThrow('down');
    expect(disposed).toBe(1);
  });

  it('STO-9: its shared cases notice an instance that does not see the other', async () => {
    const open: StoreFactory = () => {
      const store = new MemoryRunStore();
      return Promise.resolve({
        store,
        reopen: () => Promise.resolve(store),
        second: () => Promise.resolve(new MemoryRunStore()),
        dispose: () => store.close(),
      });
    };
    for (const one of sharedCases) await expect(one.run(open)).rejects.toThrow();
  });

  it('STO-9: its shared cases ask for a second instance where the factory has none', async () => {
    const store = new MemoryRunStore();
    const open: StoreFactory = () =>
      Promise.resolve({ store, reopen: () => Promise.resolve(store), dispose: () => store.close() });
    await expect(sharedCases[0]?.run(open)).rejects.toThrow('needs `second`');
  });
});

// One instance given out twice is as consistent as a store can be.
runContract(
  'One store in the place of two',
  factoryOf(() => new MemoryRunStore()),
  sharedCases,
);
