// SQLite in WAL mode through better-sqlite3, at one of its two durable-enough settings.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { fileSystemOf } from '../machine.mjs';
import { countStatements } from './count-statements.mjs';

const require = createRequire(import.meta.url);
// In the project rather than in the system's temporary folder, which is memory on many machines.
const DATA = fileURLToPath(new URL('../../data', import.meta.url));

const DURABILITY = {
  FULL: 'every commit is on the disk when it is told',
  NORMAL: 'a power cut may lose the last commits; a crash of the process loses none',
};

/** @param synchronous FULL or NORMAL */
export function openSqlite(synchronous) {
  mkdirSync(DATA, { recursive: true });
  const directory = mkdtempSync(path.join(DATA, 'bench-'));
  const file = path.join(directory, 'runs.sqlite');
  const inOtherProcess = { type: 'better-sqlite3', database: file, synchronous };
  const handle = new BetterSqlite3(file);
  configure(handle, synchronous);
  handle.exec('CREATE TABLE bench_floor (id INTEGER PRIMARY KEY, body TEXT NOT NULL)');
  const insert = handle.prepare('INSERT INTO bench_floor (id, body) VALUES (?, ?)');
  const facts = {
    version: `SQLite ${handle.prepare('SELECT sqlite_version() AS version').get().version}`,
    durability: `WAL, synchronous = ${synchronous}: ${DURABILITY[synchronous]}`,
    fileSystem: fileSystemOf(directory),
  };
  return {
    name: `SQLite ${synchronous}`,
    key: `sqlite-${synchronous.toLowerCase()}`,
    facts,
    dataSource: () => sqliteDataSource(inOtherProcess),
    inOtherProcess,
    // One connection: what is asked at the same time is done in turns.
    insertBare: async (id, body) => {
      insert.run(id, body);
    },
    insertBareTogether: async (id, body) => {
      insert.run(id, body);
      await new Promise((next) => setImmediate(next));
    },
    refreshStatistics: () => void handle.exec('ANALYZE'),
    bytesStored: () => {
      handle.pragma('wal_checkpoint(PASSIVE)');
      return handle.pragma('page_count', { simple: true }) * handle.pragma('page_size', { simple: true });
    },
    countStatements: () => countStatements(inOtherProcess.type, require),
    close: () => {
      handle.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export function sqliteDataSource({ synchronous, ...options }) {
  return { ...options, prepareDatabase: (handle) => configure(handle, synchronous) };
}

function configure(handle, synchronous) {
  handle.pragma('journal_mode = WAL');
  handle.pragma(`synchronous = ${synchronous}`);
}
