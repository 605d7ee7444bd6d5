/** One process of the application under test, from its start to its end. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { InboxMessage, Interaction } from '../../lib/contracts/interaction.js';
import type { SequencedEntry } from '../../lib/contracts/journal-entry.js';
import type { Message } from '../../lib/contracts/message.js';
import type { Operation } from '../../lib/contracts/operation.js';
import type { StoreMetrics } from '../../lib/contracts/ports/run-store.port.js';
import type { Run, WorkerStatus } from '../../lib/contracts/run-view.js';
import type { SessionRecord } from '../../lib/contracts/run.js';

/** Where a process is to die: its n-th commit of the run in hand. */
export interface KillPoint {
  side: 'before' | 'after';
  commit: number;
}

export interface Order {
  runId: string;
  /** The run cannot exist yet. */
  fresh: boolean;
  crash?: KillPoint;
}

/** A commit as the process saw it; entries as `type key`. */
export interface SeenCommit {
  number: number;
  kind: string;
  entries: string[];
}

/** What a process says when it saw the run settle. */
export interface Report {
  run: Run;
  entries: SequencedEntry[];
  messages: Message[];
  operations: Operation[];
  interactions: Interaction[];
  inbox: InboxMessage[];
  session: SessionRecord | null;
  metrics: StoreMetrics;
  notes: { operationId: string }[];
  worker: WorkerStatus;
  /** Those of this process. */
  commits: SeenCommit[];
}

/** What a process says when it was asked to end: which workers are alive without it. */
export interface SignOff {
  workerId: string;
  live: string[];
}

export interface LifeOptions {
  workload: string;
  databaseUrl: string;
  worldFile: string;
  /** From 1; part of its worker's id. */
  number: number;
  lease: string;
}

export type LifeEnd = { report: Report } | { killed: true };

const APP = resolve('test/crash/app/main.mjs');

export class Life {
  readonly number: number;
  /** What it printed since its latest order. */
  log = '';
  private readonly child: ChildProcess;
  private readonly closed: Promise<[number | null, NodeJS.Signals | null]>;

  /** Starts a process that has this order from its first moment. */
  constructor(options: LifeOptions, order: Order) {
    const { PATH = '' } = process.env;
    this.number = options.number;
    this.child = fork(APP, [], {
      // Not this runner's flags.
      execArgv: [],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        PATH,
        NODE_ENV: 'test',
        NO_COLOR: '1',
        DATABASE_URL: options.databaseUrl,
        WORLD_FILE: options.worldFile,
        WORKLOAD: options.workload,
        LEASE: options.lease,
        LIFE: String(options.number),
        ORDER: JSON.stringify(order),
      },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (data: Buffer) => (this.log += data.toString()));
    this.closed = once(this.child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  }

  /** The next order, for a process that lives on. */
  order(order: Order): void {
    this.log = '';
    this.child.send(order);
  }

  /** How the order in hand ends. @throws Error when the process ends in any other way than by the SIGKILL it was to die of */
  async end(): Promise<LifeEnd> {
    const said = await this.said<Report>();
    if ('code' in said) {
      if (said.signal === 'SIGKILL') return { killed: true };
      throw new Error(`Process ${this.number} ended with ${said.signal ?? said.code}.\n${this.log}`);
    }
    return { report: said };
  }

  /** An orderly end. */
  async stop(): Promise<SignOff> {
    this.child.send('stop');
    const said = await this.said<SignOff>();
    if ('code' in said) throw new Error(`Process ${this.number} ended with ${said.signal ?? said.code}.\n${this.log}`);
    await this.closed;
    return said;
  }

  /** Ends it if it still lives. */
  async discard(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.closed;
  }

  private async said<T>(): Promise<T | { code: number | null; signal: NodeJS.Signals | null }> {
    const message = once(this.child, 'message').then(([value]) => value as T);
    return Promise.race([message, this.closed.then(([code, signal]) => ({ code, signal }))]);
  }
}
