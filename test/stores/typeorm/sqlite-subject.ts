// A SQLite file of its own, with as many data sources and stores over it as a test opens.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { TypeOrmRunStore, type TypeOrmRunStoreOptions } from '../../../lib/stores/typeorm/typeorm-run.store.js';

export interface SqliteHost {
  dataSource: DataSource;
  store: TypeOrmRunStore;
}

export class SqliteSubject {
  private readonly hosts: SqliteHost[] = [];

  private constructor(
    private readonly directory: string,
    readonly file: string,
  ) {}

  static async create(): Promise<SqliteSubject> {
    const directory = await mkdtemp(join(tmpdir(), 'agent-runs-'));
    return new SqliteSubject(directory, join(directory, 'runs.sqlite'));
  }

  async connect(options: Partial<DataSourceOptions> = {}): Promise<DataSource> {
    const dataSource = new DataSource({
      type: 'better-sqlite3',
      database: this.file,
      enableWAL: true,
      ...options,
    } as DataSourceOptions);
    return dataSource.initialize();
  }

  /** One more process, as far as the database can tell: a connection and a store of its own. */
  async open(storeOptions: TypeOrmRunStoreOptions = {}, options: Partial<DataSourceOptions> = {}): Promise<SqliteHost> {
    const dataSource = await this.connect(options);
    const store = new TypeOrmRunStore(dataSource, storeOptions);
    await store.open();
    const host = { dataSource, store };
    this.hosts.push(host);
    return host;
  }

  async close(host: SqliteHost): Promise<void> {
    await host.store.close();
    if (host.dataSource.isInitialized) await host.dataSource.destroy();
  }

  async dispose(_keepTables?: boolean): Promise<void> {
    for (const host of this.hosts) await this.close(host);
    await rm(this.directory, { recursive: true, force: true });
  }
}
