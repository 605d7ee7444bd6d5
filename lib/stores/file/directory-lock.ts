import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { BrokenStoreError, StoreLockedError } from '../../errors/store.errors.js';
import { fromJson, toJson } from '../codec/payload-codec.js';
import { FILE_MODE } from './disk.js';

/**
 * One process per directory. The lock is a file that names its owner: host, pid, start of the process, token. A living owner refuses everybody
 * else; a dead one of this host is taken over; what cannot be judged from here (another host, a pid that another process has now, an unreadable file)
 * blocks and says how to clear it. Taking over is itself done under a lock of the same kind, so that two processes that find one dead owner do not both
 * succeed it.
 */
export interface LockOwner {
  host: string;
  pid: number;
  /** See {@link processState}; null where the system does not tell. */
  processStart: string | null;
  token: string;
  /** ISO 8601, for people. */
  since: string;
}

export class DirectoryLock {
  private constructor(
    private readonly path: string,
    private readonly token: string,
  ) {}

  /** @throws StoreLockedError */
  static acquire(path: string): DirectoryLock {
    const owner: LockOwner = {
      host: hostname(),
      pid: process.pid,
      processStart: processState(process.pid).start,
      token: randomUUID(),
      since: new Date().toISOString(),
    };
    const ticket = `${path}.${owner.token}`;
    writeTicket(ticket, owner);
    try {
      take(path, ticket);
    } finally {
      rmSync(ticket, { force: true });
    }
    return new DirectoryLock(path, owner.token);
  }

  /** Asked before each flush: somebody may have cleared the lock by hand while its owner lived. @throws BrokenStoreError */
  assertHeld(): void {
    const owner = readOwner(this.path);
    if (owner !== 'none' && owner !== 'unreadable' && owner.token === this.token) return;
    throw new BrokenStoreError(
      `The lock ${this.path} was taken away from this process. Another one may be writing here: nothing more is written.`,
    );
  }

  release(): void {
    const owner = readOwner(this.path);
    if (owner !== 'none' && owner !== 'unreadable' && owner.token === this.token) rmSync(this.path, { force: true });
  }
}

function take(path: string, ticket: string): void {
  for (;;) {
    try {
      // A link appears with its content, or not at all.
      linkSync(ticket, path);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const dead = deadOwner(path);
    if (dead !== null && succeed(path, ticket, dead)) return;
  }
}

/** Puts our ticket in a dead owner's place, unless somebody else was quicker. */
function succeed(path: string, ticket: string, dead: LockOwner): boolean {
  const guard = `${path}.takeover`;
  take(guard, ticket);
  try {
    const owner = readOwner(path);
    if (owner === 'none' || owner === 'unreadable' || owner.token !== dead.token) return false;
    linkSync(ticket, `${ticket}.new`);
    renameSync(`${ticket}.new`, path);
    return true;
  } finally {
    rmSync(guard, { force: true });
  }
}

/** @returns the owner if it is surely dead; null when the lock has just gone. @throws StoreLockedError for every other owner */
function deadOwner(path: string): LockOwner | null {
  const owner = readOwner(path);
  if (owner === 'none') return null;
  if (owner === 'unreadable') throw blocked(path, 'it cannot be read, so its owner is not known');
  const named = `process ${owner.pid} on host ${owner.host}, since ${owner.since}`;
  if (owner.host !== hostname()) {
    throw blocked(path, `it belongs to ${named}, and whether that lives cannot be seen from host ${hostname()}`, owner);
  }
  const { isAlive, start } = processState(owner.pid);
  if (!isAlive) return owner;
  if (start !== null && owner.processStart !== null && start !== owner.processStart) {
    throw blocked(path, `it belongs to ${named}, but another process has that pid now`, owner);
  }
  throw new StoreLockedError(
    `The directory is in use: ${path} belongs to ${named}. One process may open a file store: stop that one or use another directory.`,
    { details: { path, owner } },
  );
}

function blocked(path: string, why: string, owner?: LockOwner): StoreLockedError {
  return new StoreLockedError(
    `The directory is locked: ${path} is there, ${why}. Make sure that no process uses the directory, then delete ${path} and start again.`,
    { details: { path, owner: owner ?? null } },
  );
}

function readOwner(path: string): LockOwner | 'none' | 'unreadable' {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'none';
    throw error;
  }
  try {
    const owner = fromJson(text) as LockOwner;
    return typeof owner.token === 'string' && typeof owner.host === 'string' && Number.isSafeInteger(owner.pid)
      ? owner
      : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

function writeTicket(path: string, owner: LockOwner): void {
  const file = openSync(path, 'wx', FILE_MODE);
  try {
    writeSync(file, `${toJson(owner)}\n`);
    // Else a power cut could leave a lock without content, which nobody may judge.
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Which process is meant by a pid: pids are reused, a pid together with the moment its process began is not. */
export interface ProcessState {
  isAlive: boolean;
  /** When it began, as the system tells it; null where it does not. Only good for comparing. */
  start: string | null;
}

export function processState(pid: number): ProcessState {
  const stat = statOf(pid);
  // A zombie has a pid and runs nothing: it cannot write any more.
  if (stat) return { isAlive: stat.state !== 'Z' && stat.state !== 'X', start: stat.start };
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Without permission it is somebody else's, but it is there.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return { isAlive: false, start: null };
  }
  return { isAlive: true, start: startByPs(pid) };
}

/** Linux: proc_pid_stat(5). The boot id keeps the ticks of two boots apart. */
function statOf(pid: number): { state: string; start: string } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    // The command in parentheses may hold anything; the fields that follow are from the third on.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: `${boot}:${fields[19] ?? ''}` };
  } catch {
    return null;
  }
}

function startByPs(pid: number): string | null {
  if (process.platform === 'win32') return null;
  try {
    const answer = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 5_000,
    });
    return answer.trim() || null;
  } catch {
    return null;
  }
}
