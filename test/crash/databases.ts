/** The databases that runs are killed on, in one place. Each lane works in a throw-away one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  isServerThere,
  SERVER_TYPES,
  ServerSubject,
  serverUrl,
  type ServerType,
} from '../stores/typeorm/server-subject.js';

export interface CrashDatabase {
  name: string;
  /** False: its suites are reported as skipped. */
  isThere: boolean;
  isServer: boolean;
  /** A new, empty database. */
  create(): Promise<{ url: string; drop(): Promise<void> }>;
}

const sqlite: CrashDatabase = {
  name: 'sqlite',
  isThere: true,
  isServer: false,
  create: async () => {
    const directory = mkdtempSync(join(tmpdir(), 'agent-runs-crash-'));
    return {
      url: `sqlite:${join(directory, 'runs.sqlite')}`,
      drop: async () => rmSync(directory, { recursive: true, force: true }),
    };
  },
};

function onServer(type: ServerType): CrashDatabase {
  return {
    name: type,
    isThere: isServerThere(type),
    isServer: true,
    create: async () => {
      const subject = await ServerSubject.create(type);
      const url = serverUrl(type);
      url.pathname = `/${subject.database}`;
      return { url: url.href, drop: () => subject.dispose() };
    },
  };
}

/** `CRASH_DATABASES=sqlite,postgres` leaves the others out. */
const { CRASH_DATABASES } = process.env;

export const crashDatabases: readonly CrashDatabase[] = [sqlite, ...SERVER_TYPES.map(onServer)].filter(
  ({ name }) => CRASH_DATABASES?.split(',').includes(name) ?? true,
);
