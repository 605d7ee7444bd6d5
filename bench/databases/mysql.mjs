// MariaDB (or MySQL) through mysql2, in a database of our own that is dropped at the end.
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import mysql from 'mysql2';
import { countStatements } from './count-statements.mjs';

const require = createRequire(import.meta.url);

export async function openMysql(url, poolSize) {
  const database = `agent_runs_bench_${randomBytes(4).toString('hex')}`;
  const admin = mysql.createConnection(url.href).promise();
  await admin.query(`CREATE DATABASE ${database}`);
  const own = Object.assign(new URL(url), { pathname: `/${database}` });
  const pool = mysql.createPool({ uri: own.href, connectionLimit: poolSize }).promise();
  const one = await mysql.createConnection(own.href).promise();
  await one.query('CREATE TABLE bench_floor (id BIGINT PRIMARY KEY, body VARCHAR(300) NOT NULL)');
  const [[settings]] = await one.query(
    'SELECT VERSION() AS version, @@innodb_flush_log_at_trx_commit AS flush_log, @@log_bin AS log_bin, @@sync_binlog AS sync_binlog',
  );
  const INSERT = 'INSERT INTO bench_floor (id, body) VALUES (?, ?)';
  const isMariaDb = /mariadb/i.test(settings.version);
  const dataSource = { type: isMariaDb ? 'mariadb' : 'mysql', url: own.href, poolSize };
  return {
    name: isMariaDb ? 'MariaDB' : 'MySQL',
    key: dataSource.type,
    facts: {
      version: `${isMariaDb ? '' : 'MySQL '}${settings.version}`,
      durability: `innodb_flush_log_at_trx_commit = ${settings.flush_log}, ${settings.log_bin ? `sync_binlog = ${settings.sync_binlog}` : 'no binary log'}`,
      pool: poolSize,
    },
    dataSource: () => dataSource,
    inOtherProcess: dataSource,
    refreshStatistics: async () => {
      const [tables] = await one.query("SHOW TABLES LIKE 'agent%'");
      if (tables.length > 0) await one.query(`ANALYZE TABLE ${tables.flatMap(Object.values).join(', ')}`);
    },
    insertBare: (id, body) => one.execute(INSERT, [id, body]),
    insertBareTogether: (id, body) => pool.execute(INSERT, [id, body]),
    // InnoDB's table files grow in steps and its statistics are estimates: not told.
    bytesStored: () => null,
    countStatements: () => countStatements(dataSource.type, require),
    close: async () => {
      await Promise.all([pool.end(), one.end()]);
      await admin.query(`DROP DATABASE ${database}`);
      await admin.end();
    },
  };
}
