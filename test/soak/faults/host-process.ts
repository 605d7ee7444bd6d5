/** One process of the application under test, from its start to its end, and the services in it, called over IPC. */
import { type ChildProcess, fork } from 'node:child_process';
import { resolve } from 'node:path';
import type { DataSource } from 'typeorm';
import type { JsonValue } from '../../../lib/contracts/json.js';
import type { AgentOptions } from '../../../lib/decorators/agent.options.js';
import type { RunMetrics, RunService } from '../../../lib/engine/run-service.js';
import type { RunRecovery } from '../../../lib/engine/run-recovery.js';
import type { RunWorker } from '../../../lib/engine/run-worker.js';
import type { AgentRunsModuleOptions } from '../../../lib/module/agent-runs-module.options.js';
import type { AgentRunsTypeOrmOptions } from '../../../lib/module/typeorm/agent-runs-typeorm.module.js';
import type { RunStore } from '../../../lib/contracts/ports/run-store.port.js';
import type { Ask, FarSide } from './far-side.js';

export interface PoolFacts {
  open: number;
  idle: number;
  waiting: number;
}

interface Services {
  runs: RunService;
  worker: RunWorker;
  recovery: RunRecovery;
  metrics: RunMetrics;
  store: RunStore;
  database: DataSource;
  clock: { set(byMs: number): number };
  pool: { facts(): PoolFacts };
}

type Method<S> = { [K in keyof S]: S[K] extends (...args: never[]) => unknown ? K : never }[keyof S];
type Result<F> = F extends (...args: never[]) => infer R ? Awaited<R> : never;

export interface HostOptions {
  dataSource: Record<string, unknown>;
  store?: AgentRunsTypeOrmOptions;
  runs?: Omit<AgentRunsModuleOptions, 'models'>;
  agent?: Partial<AgentOptions>;
  /** Whether the agent has a transactional tool. Default true. */
  hasNotes?: boolean;
  env?: Record<string, string>;
  /** Of its wall clock, which can then be set. */
  clockOffsetMs?: number;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** What a call in the process threw. */
export class HostError extends Error {
  readonly code: string | undefined;
  readonly problems: readonly string[];

  constructor({
    name,
    message,
    code,
    problems = [],
  }: {
    name: string;
    message: string;
    code?: string;
    problems?: string[];
  }) {
    super(`${name}: ${message}`);
    this.code = code;
    this.problems = problems;
  }
}

type FromChild =
  | { up: string }
  | { failed: ConstructorParameters<typeof HostError>[0] }
  | { ask: number; call: Omit<Ask, 'by' | 'at'> }
  | { letGo: Omit<Ask, 'by' | 'at'> }
  | { id: number; result?: unknown; error?: ConstructorParameters<typeof HostError>[0] };

const APP = resolve('test/soak/faults/app/main.mjs');
const SHIFT_CLOCK = resolve('test/soak/faults/app/shift-clock.mjs');

/** As many processes come up at a time as there are cores for it; more would only be late for their own deadlines. */
const MAX_BOOTING = 2;
let booting = 0;
const waiting: (() => void)[] = [];

async function aPlaceToBoot(): Promise<() => void> {
  if (booting >= MAX_BOOTING) await new Promise<void>((resolve) => waiting.push(resolve));
  booting += 1;
  return () => {
    booting -= 1;
    waiting.shift()?.();
  };
}

export class HostProcess {
  /** All that it printed. */
  log = '';
  workerId = '';
  readonly exit: Promise<Exit>;
  private isOver = false;
  private isStopping = false;
  private calls = 0;
  private readonly pending = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();

  private constructor(
    readonly name: string,
    private readonly child: ChildProcess,
    private readonly farSide: FarSide,
  ) {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (data: Buffer) => (this.log += data.toString()));
    this.exit = new Promise((resolve) =>
      child.once('close', (code, signal) => {
        this.isOver = true;
        for (const { reject } of this.pending.values()) reject(this.ended({ code, signal }));
        this.pending.clear();
        resolve({ code, signal });
      }),
    );
  }

  /** Resolves when the application is up. @throws HostError when it could not boot */
  static async boot(name: string, farSide: FarSide, options: HostOptions): Promise<HostProcess> {
    const release = await aPlaceToBoot();
    try {
      return await HostProcess.bootNow(name, farSide, options);
    } finally {
      release();
    }
  }

  private static async bootNow(name: string, farSide: FarSide, options: HostOptions): Promise<HostProcess> {
    const { env = {}, clockOffsetMs, ...host } = options;
    const child = fork(APP, [], {
      // Not this runner's flags.
      execArgv: clockOffsetMs === undefined ? [] : ['--import', SHIFT_CLOCK],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced',
      env: {
        PATH: process.env['PATH'] ?? '',
        NODE_ENV: 'test',
        NO_COLOR: '1',
        HOST_OPTIONS: JSON.stringify({ store: {}, runs: {}, agent: {}, hasNotes: true, ...host }),
        ...(clockOffsetMs !== undefined && { CLOCK_OFFSET_MS: String(clockOffsetMs) }),
        ...env,
      },
    });
    const process_ = new HostProcess(name, child, farSide);
    await process_.booted();
    return process_;
  }

  /** Calls a service in the process. @throws HostError with what it threw there, Error when the process ends meanwhile */
  call<N extends keyof Services, M extends Method<Services[N]>>(
    service: N,
    method: M,
    ...args: Services[N][M] extends (...args: infer A) => unknown ? A : never
  ): Promise<Result<Services[N][M]>> {
    const id = ++this.calls;
    return new Promise<Result<Services[N][M]>>((resolve, reject) => {
      if (this.isOver) return reject(new Error(`The process ${this.name} has ended.`));
      this.pending.set(id, { resolve, reject });
      this.child.send({ id, service, method, args });
    });
  }

  /**
   * Closes the application and lets the process end by itself, which it does only when nothing is left open.
   * @returns how long that took, in ms
   */
  async close(limitMs: number): Promise<number> {
    return this.endWithin(limitMs, () => this.child.send({ service: 'app' }));
  }

  /** As an orchestrator ends it. @returns how long that took, in ms */
  async terminate(limitMs: number): Promise<number> {
    return this.endWithin(limitMs, () => this.child.kill('SIGTERM'));
  }

  /** SIGKILL, if it still lives. */
  async discard(): Promise<void> {
    this.isStopping = true;
    this.child.kill('SIGKILL');
    await this.exit;
  }

  /** The end of what it printed. */
  get lastWords(): string {
    return this.log.split('\n').slice(-15).join('\n');
  }

  private async endWithin(limitMs: number, end: () => void): Promise<number> {
    const begun = performance.now();
    this.isStopping = true;
    end();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => (timer = setTimeout(() => resolve('late'), limitMs)));
    const exit = await Promise.race([this.exit, late]);
    clearTimeout(timer);
    if (exit === 'late')
      throw new Error(`The process ${this.name} was still there after ${limitMs} ms.\n${this.lastWords}`);
    if (exit.code !== 0 && exit.signal !== 'SIGTERM') throw this.ended(exit);
    return performance.now() - begun;
  }

  private booted(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.child.on('message', (message: FromChild) => {
        if ('up' in message) {
          this.workerId = message.up;
          resolve();
        } else if ('failed' in message) reject(new HostError(message.failed));
        else this.take(message);
      });
      void this.exit.then((exit) => reject(this.ended(exit)));
    });
  }

  private take(message: Exclude<FromChild, { up: string } | { failed: unknown }>): void {
    if ('letGo' in message)
      return void this.farSide.lettingsGo.push({ ...message.letGo, by: this.name, at: performance.now() });
    if ('ask' in message) return void this.askFarSide(message.ask, message.call);
    const { id, result, error } = message;
    const pending = this.pending.get(id);
    this.pending.delete(id);
    if (error) pending?.reject(new HostError(error));
    else pending?.resolve(result as never);
  }

  private async askFarSide(number: number, call: Omit<Ask, 'by' | 'at'>): Promise<void> {
    const value: JsonValue = await this.farSide.take({ ...call, by: this.name, at: performance.now() });
    if (!this.isOver && this.child.connected) this.child.send({ answer: number, value });
  }

  private ended({ code, signal }: Exit): Error {
    const how = this.isStopping ? 'was ended' : 'ended by itself';
    return new Error(`The process ${this.name} ${how}: ${signal ?? code}.\n${this.lastWords}`);
  }
}
