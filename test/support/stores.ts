// The stores that engine suites run on, in one place: a database that is added here is proven by all of them.
import { afterAll, jest } from '@jest/globals';
import type { StoreUnderTest } from '../../packages/contract/lib/store-case.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { FileSubject } from '../stores/file/file-subject.js';
import { isServerThere, ServerSubject, type ServerType } from '../stores/typeorm/server-subject.js';
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
  /** A database with processes of its own: slower, and really concurrent. */
  isServer: boolean;
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
  /** One more process over the same data; given the one that is there. */
  another: (current: H) => Promise<H> = open,
): Promise<SharedStore> {
  let current = await open();
  return {
    store: current.store,
    reopen: async () => {
      await subject.close(current);
      current = await open();
      return current.store;
    },
    second: async () => (await another(current)).store,
    dispose: () => subject.dispose(),
  };
}

async function sqlite(): Promise<SharedStore> {
  const subject = await SqliteSubject.create();
  return over(subject, () => subject.open({}, unsynced));
}

/** One process, one directory: a second process is refused, so it has to be the same store. */
async function file(): Promise<SharedStore> {
  const subject = await FileSubject.create();
  const close = ({ store }: { store: SharedStore['store'] }) => store.close();
  return over(
    { close, dispose: () => subject.dispose() },
    async () => ({ store: await subject.open() }),
    (current) => Promise.resolve(current),
  );
}

function server(type: ServerType): () => Promise<SharedStore> {
  return async () => {
    const subject = await ServerSubject.create(type);
    return over(subject, () => subject.open());
  };
}

const EMBEDDED: readonly EngineStore[] = [
  { name: 'memory', open: memory, transactions: false, isServer: false },
  { name: 'SQLite', open: sqlite, transactions: true, isServer: false },
];

const FILE: EngineStore = { name: 'file', open: file, transactions: false, isServer: false };

const SERVERS: readonly (EngineStore & { type: ServerType })[] = [
  { name: 'MariaDB', type: 'mariadb', open: server('mariadb'), transactions: true, isServer: true },
  { name: 'Postgres', type: 'postgres', open: server('postgres'), transactions: true, isServer: true },
];

const SERVERS_THERE = SERVERS.filter(({ type }) => isServerThere(type));

/** `TEST_ENGINE_STORES=MariaDB,Postgres` puts these in place of those a suite runs on. */
const wanted = process.env['TEST_ENGINE_STORES']?.split(',');

function chosen(stores: readonly EngineStore[]): readonly EngineStore[] {
  return wanted ? [...EMBEDDED, FILE, ...SERVERS].filter(({ name }) => wanted.includes(name)) : stores;
}

/** What every engine suite runs on. */
export const ENGINE_STORES = chosen(EMBEDDED);

/** For what only real concurrency can break: also the servers that are there, as the set-up found (the contract suites report what is missing). */
export const ALL_ENGINE_STORES = chosen([...EMBEDDED, ...SERVERS_THERE]);

/** For what must be shown on each of them. */
export const EVERY_STORE = chosen([...EMBEDDED, FILE, ...SERVERS_THERE]);

// Both for the file that imports this one. Servers take their time; what hangs is found by `until`.
jest.setTimeout(60_000);
afterAll(() => ServerSubject.dropDatabases(), 60_000);
