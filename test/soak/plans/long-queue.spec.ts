/** Five thousand runs in the queue and eight workers at it, on a server that can leave out locked rows and on one that cannot: B119. */
import type { DataSource } from 'typeorm';
import type { DueQuery, RunStore, TransitionRequest } from '../../../lib/contracts/ports/run-store.port.js';
import { scriptedModel } from '../../../lib/model/scripted/scripted-model.js';
import { TypeOrmRunStore } from '../../../lib/stores/typeorm/typeorm-run.store.js';
import { agent, engineOver, stopEngines, type TestEngine } from '../../support/engine-harness.js';
import { until } from '../../support/until.js';
import { describeServers, ServerSubject, type ServerType } from '../../stores/typeorm/server-subject.js';

const RUNS = 5_000;
/** Where everybody waits for everybody. */
const RUNS_WITHOUT_SKIPPING = 1_000;
const WORKERS = 8;
const TIMEOUT_MS = 300_000;

interface Counts {
  looks: number;
  idleLooks: number;
  claims: number;
  lostClaims: number;
}

describeServers(`a queue of thousands of runs and ${WORKERS} workers on %s`, (type) => {
  let subject: ServerSubject;
  const stores: TypeOrmRunStore[] = [];
  const dataSources: DataSource[] = [];

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
  }, 60_000);
  afterEach(async () => {
    await stopEngines();
    for (const store of stores.splice(0)) await store.close();
    for (const dataSource of dataSources.splice(0)) await dataSource.destroy();
    await subject.dispose();
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const store = async (maySkip: boolean): Promise<TypeOrmRunStore> => {
    const dataSource = await subject.connect({ poolSize: 5 });
    dataSources.push(dataSource);
    if (!maySkip) withoutSkipLocked(type, dataSource);
    const opened = new TypeOrmRunStore(dataSource, { statementTimeoutMs: 20_000 });
    await opened.open();
    stores.push(opened);
    return opened;
  };

  it.each([
    ['with SKIP LOCKED', true, RUNS],
    ['without it, as on older servers', false, RUNS_WITHOUT_SKIPPING],
  ])(
    'B119: %s each is claimed once, no conflict of the database fails a run, and few looks are in vain',
    async (_, maySkip, amount) => {
      const office = await engineOver(await store(maySkip), agent(scriptedModel([])), {
        worker: false,
        maxPendingRuns: amount + 1,
      });
      let next = 0;
      const submit = async (): Promise<void> => {
        for (let n = (next += 1); n <= amount; n = next += 1)
          await office.runs.start({ agent: 'support', prompt: 'go', runId: `run-${n}` });
      };
      await Promise.all(Array.from({ length: 32 }, submit));

      const asked: unknown[] = [];
      const model = scriptedModel([(request) => (asked.push(request), { text: 'done' })], { place: 'transcript' });
      const counts: Counts = { looks: 0, idleLooks: 0, claims: 0, lostClaims: 0 };
      const workers: TestEngine[] = [];
      for (let n = 0; n < WORKERS; n += 1)
        workers.push(
          await engineOver(counting(await store(maySkip), counts), agent(model), {
            maxConcurrentRuns: 10,
            leaseMs: 120_000,
          }),
        );
      const left = async (): Promise<number> => {
        const [row] = await subject.admin.query<{ left: string }[]>(
          `SELECT COUNT(*) AS ${type === 'postgres' ? '"left"' : '`left`'} FROM agent_runs WHERE status <> 'completed'`,
        );
        return Number(row?.left);
      };
      await until(async () => (await left()) === 0, 'the end of all runs', { withinMs: TIMEOUT_MS, everyMs: 200 });

      const [sums] = await subject.admin.query<Record<string, string>[]>(
        'SELECT COUNT(*) AS amount, MIN(attempt) AS least, MAX(attempt) AS most, MAX(recoveries) AS recoveries FROM agent_runs',
      );
      expect(Object.values(sums as object).map(Number)).toEqual([amount, 1, 1, 0]);
      expect(asked).toHaveLength(amount);
      const troubles = workers.flatMap(({ logged }) =>
        logged.filter(({ level }) => level === 'warn' || level === 'error'),
      );
      expect(troubles).toEqual([]);
      // Of all looks while there was work, and of all tries to claim.
      expect(counts.lostClaims).toBeLessThan(counts.claims / 2);
      expect(counts.idleLooks).toBeLessThan(counts.looks / 2);
      if (maySkip) expect(stores.map((one) => one.conflicts())).toEqual(stores.map(() => ({})));
    },
    TIMEOUT_MS + 60_000,
  );
});

function counting(inner: RunStore, counts: Counts): RunStore {
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...args: never[]) => Promise<unknown>;
      if (name === 'due')
        return async (...args: never[]) => {
          const answer = (await method(...args)) as Awaited<ReturnType<RunStore['due']>>;
          if ((args[0] as unknown as DueQuery).limit > 0) {
            counts.looks += 1;
            if (answer.claimable.length === 0) counts.idleLooks += 1;
          }
          return answer;
        };
      if (name === 'transition')
        return async (...args: never[]) => {
          const answer = (await method(...args)) as { outcome: string; result?: { outcome?: string } };
          if ((args[0] as unknown as TransitionRequest<unknown>).skipLocked) {
            counts.claims += 1;
            if (answer.outcome !== 'done' || answer.result?.outcome === 'lost') counts.lostClaims += 1;
          }
          return answer;
        };
      return method;
    },
  });
}

/** As if the server did not know the clause: it waits for what is locked. For connections that are made from now on; none is open that statements were sent on. */
function withoutSkipLocked(type: ServerType, dataSource: DataSource): void {
  const stripped = (sql: string): string => sql.replaceAll(' SKIP LOCKED', '');
  const { driver } = dataSource as unknown as {
    driver: Record<'pool' | 'master', { on(event: string, listener: (connection: Connection) => void): void }>;
  };
  const seen = new WeakSet<Connection>();
  const patch = (connection: Connection): void => {
    if (seen.has(connection)) return;
    seen.add(connection);
    for (const name of ['execute', 'query'] as const) {
      const sent = connection[name]?.bind(connection);
      if (!sent) continue;
      connection[name] = (options: { sql?: string; text?: string }, ...rest: unknown[]) =>
        sent(
          typeof options === 'string'
            ? stripped(options)
            : {
                ...options,
                ...(options.sql !== undefined && { sql: stripped(options.sql) }),
                ...(options.text !== undefined && { text: stripped(options.text) }),
              },
          ...rest,
        );
    }
  };
  if (type === 'mariadb') driver.pool.on('acquire', patch);
  else driver.master.on('acquire', patch);
}

interface Connection {
  execute?(...args: unknown[]): unknown;
  query?(...args: unknown[]): unknown;
}
