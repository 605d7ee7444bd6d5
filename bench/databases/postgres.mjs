// Postgres through pg, in a database of our own that is dropped at the end.
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import pg from 'pg';
import { countStatements } from './count-statements.mjs';

const require = createRequire(import.meta.url);

export async function openPostgres(url, poolSize) {
  const database = `agent_runs_bench_${randomBytes(4).toString('hex')}`;
  const admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${database}`);
  const own = Object.assign(new URL(url), { pathname: `/${database}` }).href;
  const dataSource = { type: 'postgres', url: own, poolSize };
  const pool = new pg.Pool({ connectionString: own, max: poolSize });
  // Idle connections are cut when the database is dropped.
  pool.on('error', () => undefined);
  const one = new pg.Client({ connectionString: own });
  await one.connect();
  await one.query('CREATE TABLE bench_floor (id bigint PRIMARY KEY, body text NOT NULL)');
  const setting = async (name) => (await one.query(`SHOW ${name}`)).rows[0][name];
  const insert = (id, body) => ({
    name: 'bench_floor',
    text: 'INSERT INTO bench_floor (id, body) VALUES ($1, $2)',
    values: [id, body],
  });
  return {
    name: 'Postgres',
    key: 'postgres',
    facts: {
      version: `Postgres ${await setting('server_version')}`,
      durability: `fsync = ${await setting('fsync')}, synchronous_commit = ${await setting('synchronous_commit')}`,
      pool: poolSize,
    },
    dataSource: () => dataSource,
    inOtherProcess: dataSource,
    insertBare: (id, body) => one.query(insert(id, body)),
    insertBareTogether: (id, body) => pool.query(insert(id, body)),
    bytesStored: async () =>
      Number((await one.query('SELECT pg_database_size(current_database()) AS size')).rows[0].size),
    // What autovacuum does within a minute: plans made for an empty table must not be what is measured.
    refreshStatistics: () => one.query('ANALYZE'),
    countStatements: () => countStatements('postgres', require),
    close: async () => {
      await Promise.all([pool.end(), one.end()]);
      await admin.query(`DROP DATABASE ${database} WITH (FORCE)`);
      await admin.end();
    },
  };
}
