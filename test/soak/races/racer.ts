/** One child process, from its start to its end: it is given orders and answers each of them. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { Isolation } from './race-places.js';

export interface RacerOptions {
  url: string;
  isolation: Isolation | null;
  poolSize: number;
  /** Of AgentRunsModule: `worker`, `trigger` … */
  structure: Record<string, unknown>;
  /** Of AgentRunsModule: `lease`, `pollInterval` … */
  options: Record<string, unknown>;
}

export interface Answer {
  /** `accepted`, or the code of the error. */
  code: string;
  value: any;
  /** When the racer began and ended it, in ms of the clock that all processes of the machine share. */
  began: number;
  ended: number;
}

export interface Effect {
  tool: string;
  operationId: string;
}

interface Said {
  id?: number;
  code?: string;
  value?: unknown;
  text?: string;
  began: number;
  ended: number;
  effect?: Effect;
}

interface Order {
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
  mayConflict: boolean;
}

/** Longer than any operation of the store may take. */
const PATIENCE_MS = 20_000;

const PROGRAM = resolve('test/soak/races/app/racer.mjs');

export class Racer {
  /** What it did in the world, by run. */
  readonly effects = new Map<string, Effect[]>();
  private readonly listeners = new Set<() => void>();
  private readonly waiting = new Map<number, Order>();
  private readonly exited: Promise<unknown>;
  private end: Error | null = null;
  private orders = 0;
  private log = '';

  private constructor(private readonly child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (data: Buffer) => (this.log = `${this.log}${data.toString()}`.slice(-20_000)));
    child.on('message', (said: Said) => this.hear(said));
    this.exited = once(child, 'close').then(([code, signal]) => {
      this.end = new Error(`A racer ended with ${signal ?? code}.\n${this.log}`);
      for (const { reject } of this.waiting.values()) reject(this.end);
      return this.end;
    });
  }

  /** Resolves when it takes orders. */
  static async start(options: RacerOptions): Promise<Racer> {
    const { PATH = '' } = process.env;
    const child = fork(PROGRAM, [], {
      // Not this runner's flags.
      execArgv: [],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { PATH, NODE_ENV: 'test', NO_COLOR: '1', RACER: JSON.stringify(options) },
    });
    const racer = new Racer(child);
    const end = await Promise.race([once(child, 'message').then(() => null), racer.exited]);
    if (end instanceof Error) throw end;
    return racer;
  }

  /**
   * @param at when to begin; at once without it
   * @param mayConflict whether STORE_CONFLICT is an answer
   * @throws Error for what is no error of the package, and for store errors: no caller may see one
   */
  async order(verb: string, args: unknown[], at?: number, mayConflict = false): Promise<Answer> {
    const id = ++this.orders;
    if (this.end) throw this.end;
    const answer = new Promise<Answer>((resolve, reject) => this.waiting.set(id, { resolve, reject, mayConflict }));
    this.child.send({ id, verb, args, at });
    return inTime(answer, `the answer to ${verb} ${JSON.stringify(args)}`);
  }

  /** An order that must succeed. @returns its value */
  async do(verb: string, ...args: unknown[]): Promise<any> {
    const { code, value } = await this.order(verb, args);
    if (code !== 'accepted') throw new Error(`${verb} was refused with ${code}: ${JSON.stringify(args)}`);
    return value;
  }

  /** Resolves when it has told of so many of these effects. */
  async tells(runId: string, tool: string, count = 1): Promise<void> {
    const isTold = () => (this.effects.get(runId) ?? []).filter((effect) => effect.tool === tool).length >= count;
    const told = async () => {
      while (!isTold()) await new Promise<void>((resolve) => this.listeners.add(resolve));
    };
    await inTime(told(), `${tool} of ${runId}`);
  }

  async stop(): Promise<void> {
    if (this.child.connected) this.child.send({ id: 0, verb: 'stop', args: [] });
    const patience = setTimeout(() => this.child.kill('SIGKILL'), 15_000);
    await this.exited;
    clearTimeout(patience);
  }

  private take(effect: Effect): void {
    const runId = effect.operationId.slice(0, effect.operationId.indexOf('/'));
    this.effects.set(runId, [...(this.effects.get(runId) ?? []), effect]);
    for (const listener of [...this.listeners]) {
      this.listeners.delete(listener);
      listener();
    }
  }

  private hear({ id, code, value, text, began, ended, effect }: Said): void {
    if (effect) this.take(effect);
    if (id === undefined) return;
    const order = this.waiting.get(id);
    this.waiting.delete(id);
    if (code === 'UNEXPECTED' || (code?.startsWith('STORE_') && !order?.mayConflict))
      order?.reject(new Error(`A caller was shown ${code}: ${text}`));
    else order?.resolve({ code: code ?? 'accepted', value, began, ended });
  }
}

/** What hangs must say what it waited for. */
async function inTime<T>(work: Promise<T>, what: string): Promise<T> {
  let alarm: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    alarm = setTimeout(() => reject(new Error(`${what} did not come within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(alarm);
  }
}
