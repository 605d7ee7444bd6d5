/** A database, a world, and the processes that come and go over them, one at a time. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CrashDatabase } from './databases.js';
import { Life, type KillPoint, type Report, type SignOff } from './life.js';

/** A line of the world's own record. */
export interface Fact {
  /** Number of the process that wrote it. */
  life: number;
  fact: 'entered' | 'effect' | 'probed' | 'step' | 'model' | 'killed';
  /** Or `runId`. */
  operationId?: string;
  runId?: string;
  tool?: string;
  attempt?: number;
  step?: string;
  /** Of `model`: how many replies were there before. */
  index?: number;
  /** Of `killed`. */
  side?: KillPoint['side'];
  number?: number;
  kind?: string;
  entries?: string[];
}

/** A run that was killed, once or several times, and then left alone until it was settled. */
export interface Cycle {
  runId: string;
  /** Where each process but the last was told to die. */
  kills: readonly KillPoint[];
  /** The numbers of the processes, in order; only the last one lived to tell. */
  lives: number[];
  report: Report;
  /** Those about this run. */
  facts: Fact[];
  /** What the last process printed. */
  log: string;
}

/**
 * Long enough for a heartbeat and a transactional tool (a third of it) on a busy machine, short enough to be over by the time the next process has come
 * up.
 */
const LEASE = '1500ms';

export class Lane {
  private readonly directory = mkdtempSync(join(tmpdir(), 'agent-runs-world-'));
  private readonly worldFile = join(this.directory, 'facts');
  private life: Life | null = null;
  private lives = 0;
  private runs = 0;

  private constructor(
    private readonly workload: string,
    private readonly database: Awaited<ReturnType<CrashDatabase['create']>>,
  ) {}

  static async open(database: CrashDatabase, workload: string): Promise<Lane> {
    return new Lane(workload, await database.create());
  }

  /**
   * A new run. The process that saw the run before it settle begins it, and each one after that is a fresh one.
   * @throws Error when a process ends by itself, or cannot make the run settle
   */
  async cycle(kills: readonly KillPoint[]): Promise<Cycle> {
    const runId = `run-${++this.runs}`;
    const lives: number[] = [];
    for (const crash of [...kills, undefined]) {
      const life = this.give({ runId, fresh: lives.length === 0, ...(crash && { crash }) });
      lives.push(life.number);
      const end = await life.end();
      // A process that had fewer commits than that was left alive.
      if ('report' in end)
        return { runId, kills, lives, report: end.report, facts: this.factsOf(runId), log: life.log };
      this.life = null;
    }
    throw new Error(`Process ${this.lives} was killed, and not by us.`);
  }

  /** Ends the living process in an orderly way; null when there is none. */
  async signOff(): Promise<SignOff | null> {
    const signedOff = await this.life?.stop();
    this.life = null;
    return signedOff ?? null;
  }

  async close(): Promise<void> {
    await this.life?.discard();
    this.life = null;
    rmSync(this.directory, { recursive: true, force: true });
    await this.database.drop();
  }

  private give(order: ConstructorParameters<typeof Life>[1]): Life {
    if (this.life) {
      this.life.order(order);
      return this.life;
    }
    const { workload, worldFile } = this;
    const databaseUrl = this.database.url;
    return (this.life = new Life({ workload, databaseUrl, worldFile, lease: LEASE, number: ++this.lives }, order));
  }

  private factsOf(runId: string): Fact[] {
    if (!existsSync(this.worldFile)) return [];
    return readFileSync(this.worldFile, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Fact)
      .filter((fact) => fact.runId === runId || fact.operationId?.startsWith(`${runId}/`) === true);
  }
}
