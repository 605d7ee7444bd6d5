// The data source of a host whose sessions have the isolation level that the host has chosen as its default. A COMMIT can be held back, so that what a
// transaction has locked and written stays uncommitted until it is let go.
import { AsyncLocalStorage } from 'node:async_hooks';
import mysql from 'mysql2';
import pg from 'pg';
import { DataSource } from 'typeorm';

export class HostDatabase {
  /** The COMMIT to be held back, in the work it belongs to. */
  #holding = new AsyncLocalStorage();

  /** @param isolation `READ COMMITTED` or `REPEATABLE READ`; SQLite knows neither */
  static async open(url, isolation, poolSize) {
    const host = new HostDatabase();
    host.dataSource = await new DataSource(host.#options(url, isolation, poolSize)).initialize();
    if (!url.startsWith('sqlite:')) await host.#checkIsolation(isolation, poolSize);
    return host;
  }

  /** Does work whose COMMIT is not sent before `let go` is. @param onReached called when it would have been sent */
  holdBack(letGo, onReached, work) {
    return this.#holding.run({ letGo, onReached }, work);
  }

  #options(url, isolation, poolSize) {
    if (url.startsWith('sqlite:')) return sqliteOptions(url);
    const prepare = (connection) => this.#slowDown(connection);
    if (url.startsWith('mysql:')) {
      const driver = mysqlDriver((connection) => {
        connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`);
        prepare(connection);
      });
      return { type: 'mysql', url, charset: 'utf8mb4', poolSize, driver };
    }
    // Nothing here dies of a power cut.
    const settings = [
      `default_transaction_isolation=${isolation.toLowerCase().replace(' ', '\\ ')}`,
      'synchronous_commit=off',
    ];
    const extra = { options: settings.map((setting) => `-c ${setting}`).join(' ') };
    return { type: 'postgres', url, poolSize, extra, driver: postgresDriver(prepare) };
  }

  async #checkIsolation(isolation, poolSize) {
    const isPostgres = this.dataSource.options.type === 'postgres';
    const sql = isPostgres ? 'SHOW default_transaction_isolation' : 'SELECT @@session.tx_isolation AS isolation';
    const runners = Array.from({ length: poolSize }, () => this.dataSource.createQueryRunner());
    const levels = await Promise.all(runners.map(async (runner) => Object.values((await runner.query(sql))[0])[0]));
    await Promise.all(runners.map((runner) => runner.release()));
    const wrong = levels.find((level) => level.toUpperCase().replace('-', ' ') !== isolation);
    if (wrong) throw new Error(`A connection of the host is at ${wrong}, not at ${isolation}.`);
  }

  #slowDown(connection) {
    const query = connection.query.bind(connection);
    connection.query = (statement, ...more) => {
      const text = typeof statement === 'string' ? statement : (statement.sql ?? statement.text);
      const hold = text === 'COMMIT' ? this.#holding.getStore() : undefined;
      if (!hold) return query(statement, ...more);
      hold.onReached();
      return hold.letGo.then(() => {
        const answer = query(statement, ...more);
        // What mysql2 returns beside its callback must not be awaited.
        return typeof more.at(-1) === 'function' ? undefined : answer;
      });
    };
  }
}

function sqliteOptions(url) {
  return {
    type: 'better-sqlite3',
    database: url.slice('sqlite:'.length),
    prepareDatabase: (connection) => {
      connection.pragma('journal_mode = WAL');
      connection.pragma('synchronous = OFF');
    },
  };
}

/** The driver as TypeORM takes it, with a word to each new connection before anybody uses it. */
function mysqlDriver(prepare) {
  return {
    ...mysql,
    createPool(options) {
      const pool = mysql.createPool(options);
      pool.on('connection', prepare);
      return pool;
    },
  };
}

function postgresDriver(prepare) {
  class Pool extends pg.Pool {
    constructor(options) {
      super(options);
      this.on('connect', prepare);
    }
  }
  return { ...pg, Pool };
}
