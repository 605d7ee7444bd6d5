// The stores that engine suites run on, in one place: a database that is added here is proven by all of them.
import type { StoreUnderTest } from '../../lib/testing/store-contract/store-case.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { SqliteSubject } from '../stores/typeorm/sqlite-subject.js';

export interface SharedStore extends StoreUnderTest {
  /** One more process over the same data. */
  second: NonNullable<StoreUnderTest['second']>;
}

export interface EngineStore {
  name: string;
  open: () => Promise<SharedStore>;
  /** Whether `transactional` tools can be used. */
  transactions: boolean;
}

function memory(): Promise<SharedStore> {
  const store = new MemoryRunStore();
  const same = () => Promise.resolve(store);
  return Promise.resolve({ store, reopen: same, second: same, dispose: () => store.close() });
}

/** No process of these suites dies of a power cut, so no commit waits for the disk. */
const unsynced: Parameters<SqliteSubject['open']>[1] = {
  prepareDatabase: (database: { pragma(text: string): void }) => database.pragma('synchronous = OFF'),
};

async function sqlite(): Promise<SharedStore> {
  const subject = await SqliteSubject.create();
  const open = () => subject.open({}, unsynced);
  let current = await open();
  return {
    store: current.store,
    reopen: async () => {
      await subject.close(current);
      current = await open();
      return current.store;
    },
    second: async () => (await open()).store,
    dispose: () => subject.dispose(),
  };
}

export const ENGINE_STORES: readonly EngineStore[] = [
  { name: 'memory', open: memory, transactions: false },
  { name: 'SQLite', open: sqlite, transactions: true },
];
