/** Where races are run: each server at the isolation level that a host may have as its default, and two processes on one SQLite file. */
import type { DataSource } from 'typeorm';
import type { RunStore } from '../../../lib/contracts/ports/run-store.port.js';
import { isServerThere, ServerSubject, serverUrl, type ServerType } from '../../stores/typeorm/server-subject.js';
import { SqliteSubject } from '../../stores/typeorm/sqlite-subject.js';

export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ';

export interface OpenPlace {
  url: string;
  /** The parent's own store, for looking at what came of it. */
  store: RunStore;
  dataSource: DataSource;
  drop(): Promise<void>;
}

export interface RacePlace {
  name: string;
  type: ServerType | 'sqlite';
  /** Of a host's sessions; null where there is no choice. */
  isolation: Isolation | null;
  /** False: its suites are reported as skipped. */
  isThere: boolean;
  /** A new, empty database with the tables of the package. */
  open(): Promise<OpenPlace>;
}

function onServer(type: ServerType, isolation: Isolation): RacePlace {
  return {
    name: `${type === 'mariadb' ? 'MariaDB' : 'Postgres'} at ${isolation}`,
    type,
    isolation,
    isThere: isServerThere(type),
    open: async () => {
      const subject = await ServerSubject.create(type);
      const url = serverUrl(type);
      url.pathname = `/${subject.database}`;
      return { url: url.href, ...(await subject.open()), drop: () => subject.dispose() };
    },
  };
}

const sqlite: RacePlace = {
  name: 'SQLite',
  type: 'sqlite',
  isolation: null,
  isThere: true,
  open: async () => {
    const subject = await SqliteSubject.create();
    return { url: `sqlite:${subject.file}`, ...(await subject.open()), drop: () => subject.dispose() };
  },
};

const ALL: readonly RacePlace[] = [
  onServer('mariadb', 'READ COMMITTED'),
  onServer('mariadb', 'REPEATABLE READ'),
  onServer('postgres', 'READ COMMITTED'),
  onServer('postgres', 'REPEATABLE READ'),
  sqlite,
];

/** `TEST_RACE_PLACES='Postgres,SQLite'` leaves out those whose names begin with none of these words. */
const wanted = process.env['TEST_RACE_PLACES']?.split(',');

export const racePlaces = ALL.filter(({ name }) => wanted?.some((word) => name.startsWith(word)) ?? true);
