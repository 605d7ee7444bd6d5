// A database of its own on a MariaDB or Postgres server, with as many data sources and stores over it as a test opens.
import { randomBytes } from 'node:crypto';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { describeIf } from '../../support/describe-if.js';
import { until } from '../../support/until.js';
import { TypeOrmRunStore, type TypeOrmRunStoreOptions } from '../../../lib/stores/typeorm/typeorm-run.store.js';

export type ServerType = 'mariadb' | 'postgres';

export const SERVER_TYPES: readonly ServerType[] = ['mariadb', 'postgres'];

export interface ServerHost {
  dataSource: DataSource;
  store: TypeOrmRunStore;
}

const URLS: Record<ServerType, string> = {
  mariadb: process.env['TEST_MARIADB_URL'] ?? 'mysql://root@127.0.0.1:3306',
  postgres: process.env['TEST_POSTGRES_URL'] ?? 'postgres://postgres@127.0.0.1:5432',
};

/** Whether the set-up found or started this server; without one its suites are reported as skipped. */
export function isServerThere(type: ServerType): boolean {
  return !(process.env['TEST_SERVERS_MISSING'] ?? '').split(',').includes(type);
}

/** A suite for each server. @param title with `%s` for its name */
export function describeServers(title: string, suite: (type: ServerType) => void): void {
  for (const type of SERVER_TYPES) {
    describeIf(isServerThere(type))(title.replace('%s', type), () => suite(type));
  }
}

export function serverUrl(type: ServerType): URL {
  return new URL(URLS[type]);
}

function serverOptions(type: ServerType, database: string | undefined): DataSourceOptions {
  const url = serverUrl(type);
  const login = { host: url.hostname, port: Number(url.port), username: url.username, password: url.password };
  return type === 'mariadb'
    ? { type: 'mariadb', ...login, charset: 'utf8mb4', ...(database !== undefined && { database }) }
    : {
        type: 'postgres',
        ...login,
        database: database ?? 'postgres',
        // Nothing in these tests dies of a power cut.
        extra: { options: '-c synchronous_commit=off' },
      };
}

async function onServer(type: ServerType, sql: string): Promise<void> {
  const server = await new DataSource(serverOptions(type, undefined)).initialize();
  await server.query(sql);
  await server.destroy();
}

/** A database of these tests that nobody uses now. Made once, emptied after each use: making one takes longer than most tests. */
interface TestDatabase {
  type: ServerType;
  name: string;
  admin: DataSource;
}

const idle: TestDatabase[] = [];

export class ServerSubject {
  private readonly hosts: ServerHost[] = [];

  private constructor(private readonly home: TestDatabase) {}

  static async create(type: ServerType): Promise<ServerSubject> {
    const place = idle.findIndex((one) => one.type === type);
    if (place >= 0) return new ServerSubject(idle.splice(place, 1)[0] as TestDatabase);
    const name = `agent_runs_test_${randomBytes(6).toString('hex')}`;
    await onServer(type, `CREATE DATABASE ${name}`);
    const admin = await new DataSource({ ...serverOptions(type, name), poolSize: 1 } as DataSourceOptions).initialize();
    return new ServerSubject({ type, name, admin });
  }

  /** After the last test of a file. */
  static async dropDatabases(): Promise<void> {
    for (const { type, name, admin } of idle.splice(0)) {
      await admin.destroy();
      await onServer(type, `DROP DATABASE ${name}${type === 'postgres' ? ' WITH (FORCE)' : ''}`);
    }
  }

  get type(): ServerType {
    return this.home.type;
  }

  get database(): string {
    return this.home.name;
  }

  /** A connection that belongs to neither store. */
  get admin(): DataSource {
    return this.home.admin;
  }

  async connect(options: Partial<DataSourceOptions> = {}): Promise<DataSource> {
    return new DataSource({ ...serverOptions(this.type, this.database), ...options } as DataSourceOptions).initialize();
  }

  /** Resolves when somebody waits for a lock in this database. */
  async waitForLockWait(): Promise<void> {
    const waiting =
      this.type === 'postgres'
        ? `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
        : `SELECT 1 FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`;
    const isThere = async (): Promise<boolean> => (await this.admin.query<unknown[]>(waiting)).length > 0;
    // InnoDB answers from a copy that it makes anew only when nobody has asked for 100 ms.
    await until(isThere, 'somebody waiting for a lock', { withinMs: 30_000, everyMs: 150 });
  }

  /** One more process, as far as the database can tell: a pool and a store of its own. */
  async open(storeOptions: TypeOrmRunStoreOptions = {}, options: Partial<DataSourceOptions> = {}): Promise<ServerHost> {
    const dataSource = await this.connect(options);
    const store = new TypeOrmRunStore(dataSource, storeOptions);
    await store.open();
    const host = { dataSource, store };
    this.hosts.push(host);
    return host;
  }

  async close(host: ServerHost): Promise<void> {
    await host.store.close();
    if (host.dataSource.isInitialized) await host.dataSource.destroy();
  }

  /** For a test that brings tables of its own. */
  async dropTables(): Promise<void> {
    for (const name of await this.tables()) await this.drop(name);
  }

  /** @param keepTables false where a test has changed the tables themselves */
  async dispose(keepTables = true): Promise<void> {
    for (const host of this.hosts) await this.close(host);
    for (const name of await this.tables()) {
      const isOurs = name.startsWith('agent_') && keepTables;
      if (!isOurs) await this.drop(name);
      else if (name !== 'agent_runs_schema') await this.admin.query(`DELETE FROM ${name}`);
    }
    idle.push(this.home);
  }

  private async tables(): Promise<string[]> {
    const schema = this.type === 'postgres' ? `'public'` : 'DATABASE()';
    const rows = await this.admin.query<{ name: string }[]>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ${schema}`,
    );
    return rows.map(({ name }) => name);
  }

  private async drop(table: string): Promise<void> {
    await this.admin.query(`DROP TABLE ${table}${this.type === 'postgres' ? ' CASCADE' : ''}`);
  }
}
