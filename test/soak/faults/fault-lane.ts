/** A database server of its own, a network to it, the world outside, and the processes of the application over them. */
import { DataSource, type DataSourceOptions } from 'typeorm';
import { PrivateServer, type ServerSettings } from '../../../.config/private-server.mjs';
import type { StartOptions } from '../../../lib/contracts/run-requests.js';
import type { Run } from '../../../lib/contracts/run-view.js';
import { TcpProxy } from '../../stores/typeorm/tcp-proxy.js';
import type { ServerType } from '../../stores/typeorm/server-subject.js';
import { TypeOrmRunStore } from '../../../lib/stores/typeorm/typeorm-run.store.js';
import { assertSound } from '../../support/sound-journal.js';
import { until } from '../../support/until.js';
import { FarSide } from './far-side.js';
import { type HostError, HostProcess, type HostOptions, type PoolFacts } from './host-process.js';

/** Nothing in these suites dies of a power cut: what the kernel has, no crash of a process takes back. */
const UNSYNCED: Record<ServerType, readonly string[]> = {
  mariadb: ['--innodb-flush-log-at-trx-commit=2'],
  postgres: ['-c', 'fsync=off'],
};

const DATABASE = 'faults';

export interface LaneHostOptions extends Omit<HostOptions, 'dataSource'> {
  /** Past the proxy. */
  direct?: boolean;
  /** On top of what the lane gives. */
  dataSource?: Record<string, unknown>;
}

export class FaultLane {
  readonly farSide = new FarSide();
  private readonly hosts: HostProcess[] = [];
  private connection: DataSource | undefined;

  private constructor(
    readonly type: ServerType,
    readonly server: PrivateServer,
    readonly proxy: TcpProxy,
  ) {}

  static async open(
    type: ServerType,
    { arguments: given = [], environment = {} }: ServerSettings = {},
  ): Promise<FaultLane> {
    const server = await PrivateServer.create(type);
    await server.start({ arguments: [...UNSYNCED[type], ...given], environment });
    const lane = new FaultLane(type, server, await TcpProxy.to('127.0.0.1', server.port));
    await lane.createDatabase();
    return lane;
  }

  /** On a connection of nobody's, past the proxy. */
  async query<T = Record<string, unknown>[]>(sql: string, parameters: unknown[] = []): Promise<T> {
    return (await this.connect()).query(sql, parameters);
  }

  /** Rows that transactional tools have written, by operation. */
  async notes(): Promise<Map<string, number>> {
    const rows = await this.query('SELECT operation_id, COUNT(*) AS amount FROM crash_notes GROUP BY operation_id');
    return new Map(rows.map((row) => [row['operation_id'] as string, Number(row['amount'])]));
  }

  /** Runs whose rows or journals contradict themselves, and how. */
  async unsound(runIds: readonly string[]): Promise<string[]> {
    const store = new TypeOrmRunStore(await this.connect());
    await store.open();
    const problems: string[] = [];
    for (const runId of runIds) {
      await assertSound(store, runId).catch((error: Error) => problems.push(`${runId}: ${error.message}`));
    }
    return problems;
  }

  /** The server, with other arguments. */
  async restart(given: readonly string[]): Promise<void> {
    await this.connection?.destroy();
    this.connection = undefined;
    await this.server.restart({ arguments: [...UNSYNCED[this.type], ...given] });
  }

  /** Boots a process. Its pool goes through the proxy unless it says otherwise. */
  async boot(
    name: string,
    { direct = false, dataSource = {}, runs = {}, ...options }: LaneHostOptions = {},
  ): Promise<HostProcess> {
    const host = await HostProcess.boot(name, this.farSide, {
      ...options,
      dataSource: {
        ...this.login(direct ? this.server.port : this.proxy.port),
        synchronize: this.hosts.length === 0,
        ...dataSource,
      },
      runs: {
        workerName: name,
        pollInterval: '200ms',
        reconcileEvery: '500ms',
        backoffEvery: '500ms',
        expireEvery: '500ms',
        ...runs,
      },
    });
    this.hosts.push(host);
    return host;
  }

  /** Starts a run, asking again when the database did not answer: the request id makes it the same run. */
  async start(host: HostProcess, options: StartOptions): Promise<void> {
    await until(
      () =>
        host.call('runs', 'start', options).then(
          () => true,
          (error: HostError) => unavailable(error) !== null,
        ),
      `the start of ${options.runId}`,
      { withinMs: 30_000, everyMs: 50 },
    );
  }

  /** Waits until the runs are settled or wait for somebody, asking through this process; trouble of the database is waited for too. */
  async rest(host: HostProcess, runIds: readonly string[], limitMs = 60_000): Promise<Run[]> {
    const seen = new Map<string, Run | null>();
    const isAtRest = async (): Promise<boolean> => {
      for (const runId of runIds) {
        if (isSettledOrSuspended(seen.get(runId))) continue;
        seen.set(runId, await host.call('runs', 'get', runId).catch(unavailable));
        if (!isSettledOrSuspended(seen.get(runId))) return false;
      }
      return true;
    };
    await until(isAtRest, 'the end of all runs', { withinMs: limitMs, everyMs: 20 }).catch((error: Error) => {
      const open = [...seen].filter(([, run]) => !isSettledOrSuspended(run));
      throw new Error(`${error.message}: ${JSON.stringify(open)}\n${host.lastWords}`);
    });
    return runIds.map((runId) => seen.get(runId) as Run);
  }

  /** The pool of a process with nothing to do: between two polls nobody holds or waits for a connection. */
  async poolAtRest(host: HostProcess): Promise<PoolFacts> {
    let facts = await host.call('pool', 'facts');
    const isAtRest = async (): Promise<boolean> => {
      facts = await host.call('pool', 'facts');
      return facts.idle === facts.open && facts.waiting === 0;
    };
    await until(isAtRest, 'a pool at rest', { withinMs: 10_000, everyMs: 20 });
    return facts;
  }

  async close(): Promise<void> {
    this.farSide.openAll();
    for (const host of this.hosts) await host.discard();
    await this.connection?.destroy();
    await this.proxy.close();
    await this.server.dispose();
  }

  private async connect(): Promise<DataSource> {
    return (this.connection ??= await new DataSource({
      ...this.login(this.server.port),
      poolSize: 1,
    } as DataSourceOptions).initialize());
  }

  private async createDatabase(): Promise<void> {
    const login = this.login(this.server.port);
    const database = this.type === 'postgres' ? 'postgres' : undefined;
    const admin = new DataSource({ ...login, database, poolSize: 1 } as DataSourceOptions);
    // A server that listens may still be on its way up.
    await until(
      () =>
        admin.initialize().then(
          () => true,
          () => false,
        ),
      'the server',
      { withinMs: 20_000, everyMs: 50 },
    );
    await admin.query(`CREATE DATABASE ${DATABASE}`);
    await admin.destroy();
  }

  private login(port: number): Record<string, unknown> {
    const login = { type: this.type, host: '127.0.0.1', port, database: DATABASE };
    return this.type === 'mariadb'
      ? { ...login, username: 'root', charset: 'utf8mb4' }
      : { ...login, username: 'postgres' };
  }
}

function isSettledOrSuspended(run: Run | null | undefined): boolean {
  return run?.phase === 'settled' || run?.phase === 'suspended';
}

/** The database did not answer: null. @throws whatever else it was */
function unavailable(error: HostError): null {
  if (error.code === 'STORE_UNAVAILABLE') return null;
  throw error;
}
