// The stores that engine suites run on, in one place: a database that is added here is proven by all of them.
import type { StoreUnderTest } from '../../lib/testing/store-contract/store-case.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { ServerSubject, type ServerType } from '../stores/typeorm/server-subject.js';
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

async function over<H extends { store: SharedStore['store'] }>(
  subject: {
    close(host: H): Promise<void>;
    dispose(): Promise<void>;
  },
  open: () => Promise<H>,
): Promise<SharedStore> {
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

async function sqlite(): Promise<SharedStore> {
  const subject = await SqliteSubject.create();
  return over(subject, () => subject.open({}, unsynced));
}

function server(type: ServerType): () => Promise<SharedStore> {
  return async () => {
    const subject = await ServerSubject.create(type);
    return over(subject, () => subject.open());
  };
}

const EMBEDDED: readonly EngineStore[] = [
  { name: 'memory', open: memory, transactions: false },
  { name: 'SQLite', open: sqlite, transactions: true },
];

const SERVERS: readonly EngineStore[] = [
  { name: 'MariaDB', open: server('mariadb'), transactions: true },
  { name: 'Postgres', open: server('postgres'), transactions: true },
];

/** `TEST_ENGINE_STORES=MariaDB,Postgres` puts these in place of those a suite runs on. */
const wanted = process.env['TEST_ENGINE_STORES']?.split(',');

function chosen(stores: readonly EngineStore[]): readonly EngineStore[] {
  return wanted ? [...EMBEDDED, ...SERVERS].filter(({ name }) => wanted.includes(name)) : stores;
}

/** What every engine suite runs on. */
export const ENGINE_STORES = chosen(EMBEDDED);

/** For what only real concurrency can break. */
export const ALL_ENGINE_STORES = chosen([...EMBEDDED, ...SERVERS]);

/** After the last test of a file that runs on servers. */
export const dropServerDatabases = (): Promise<void> => ServerSubject.dropDatabases();
