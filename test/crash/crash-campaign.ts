/** Works through the kill points of one workload on one database, in two lanes. */
import { availableParallelism } from 'node:os';
import { auditCycle, type CycleAudit } from './cycle-audit.js';
import type { CrashDatabase } from './databases.js';
import { Lane, type Cycle } from './lane.js';
import type { KillPoint, SeenCommit } from './life.js';

/** A run of the application under test, and what must hold after it beside what always must. */
export interface Workload {
  /** As the application knows it. */
  name: string;
  /** @param durable the commits that outlived the one crash; null where there were more */
  check(cycle: Cycle, audit: CycleAudit['audit'], durable: readonly SeenCommit[] | null): string[];
}

interface Outcome {
  settle: (problems: string[]) => void;
  problems: Promise<string[]>;
}

export class CrashCampaign {
  private readonly outcomes = new Map<string, Outcome>();
  private readonly signOffs: Promise<string[]>[] = [];

  private constructor(
    private readonly database: CrashDatabase,
    private readonly workload: Workload,
    /** Of a run that nobody disturbed. */
    readonly commits: readonly SeenCommit[],
  ) {}

  /** Watches an undisturbed run first, to learn its commits. */
  static async prepare(database: CrashDatabase, workload: Workload): Promise<CrashCampaign> {
    const lane = await Lane.open(database, workload.name);
    try {
      const cycle = await lane.cycle([]);
      const { commits } = cycle.report;
      const { problems, audit } = auditCycle(cycle, commits);
      problems.push(...workload.check(cycle, audit, commits));
      if (problems.length > 0) throw new Error(`Without any crash already:\n${explain(problems, cycle).join('\n')}`);
      return new CrashCampaign(database, workload, commits);
    } finally {
      await lane.close();
    }
  }

  /** Before and after each commit. */
  everyKill(): KillPoint[][] {
    return this.commits.flatMap(({ number }): KillPoint[][] => [
      [{ side: 'before', commit: number }],
      [{ side: 'after', commit: number }],
    ]);
  }

  /** A sample of two in a row: anywhere first, then in the first commits of whoever takes the run over. */
  someDoubleKills(count: number): KillPoint[][] {
    return Array.from({ length: count }, (_, index): KillPoint[] => [
      {
        side: index % 2 === 0 ? 'before' : 'after',
        commit: 1 + Math.round((index * (this.commits.length - 2)) / (count - 1)),
      },
      { side: index % 4 < 2 ? 'after' : 'before', commit: 1 + (index % 3) },
    ]);
  }

  /** Begins with all of them, in this order. */
  begin(kills: readonly KillPoint[][]): void {
    for (const kill of kills) {
      let settle!: Outcome['settle'];
      const problems = new Promise<string[]>((resolve) => (settle = resolve));
      this.outcomes.set(JSON.stringify(kill), { settle, problems });
    }
    const waiting = [...kills];
    for (let lane = 0; lane < Math.min(2, availableParallelism()); lane++) this.signOffs.push(this.work(waiting));
  }

  /** What is wrong after this crash; empty when all is well. */
  async problemsAfter(kills: readonly KillPoint[]): Promise<string[]> {
    return this.outcomes.get(JSON.stringify(kills))?.problems ?? ['it was not tried'];
  }

  /** What is wrong after the processes that lived to the end were stopped in an orderly way. */
  async problemsAtTheEnd(): Promise<string[]> {
    return (await Promise.all(this.signOffs)).flat();
  }

  titleOf(kills: readonly KillPoint[]): string {
    const [first, second] = kills as [KillPoint, KillPoint?];
    const { kind, entries } = this.commits[first.commit - 1] as SeenCommit;
    const at = `${first.side} commit ${first.commit} of ${this.commits.length} (${[kind, ...entries].join(', ')})`;
    return second ? `${at}, and again ${second.side} commit ${second.commit} of the process after it` : at;
  }

  /** One lane until nothing is left. @returns what is wrong after its last process has signed off */
  private async work(waiting: KillPoint[][]): Promise<string[]> {
    let lane: Lane | null = null;
    for (let kills = waiting.shift(); kills; kills = waiting.shift()) {
      let problems: string[];
      try {
        lane ??= await Lane.open(this.database, this.workload.name);
        problems = await this.tryKills(lane, kills);
      } catch (error) {
        problems = [String(error)];
      }
      // A run that was left in a mess would be picked up by the next cycle in that database.
      if (problems.length > 0) {
        await lane?.close().catch(() => undefined);
        lane = null;
      }
      this.outcomes.get(JSON.stringify(kills))?.settle(problems);
    }
    try {
      const signedOff = await lane?.signOff();
      return signedOff?.live.includes(signedOff.workerId) ? [`${signedOff.workerId} signed off and is still live`] : [];
    } catch (error) {
      return [String(error)];
    } finally {
      await lane?.close().catch(() => undefined);
    }
  }

  private async tryKills(lane: Lane, kills: KillPoint[]): Promise<string[]> {
    const cycle = await lane.cycle(kills);
    const { problems, audit } = auditCycle(cycle, this.commits);
    if (cycle.lives.length !== kills.length + 1) problems.push(`the run had ${cycle.lives.length} processes`);
    const durable = kills.length === 1 ? durableAt(this.commits, kills[0] as KillPoint) : null;
    if (durable) problems.push(...prefixProblems(cycle, durable));
    problems.push(...this.workload.check(cycle, audit, durable));
    return explain(problems, cycle);
  }
}

/** Problems with what is needed to understand them; empty when there are none. */
function explain(problems: string[], { log, report }: Cycle): string[] {
  if (problems.length === 0) return [];
  return [...problems, log, ...report.entries.map((entry) => JSON.stringify(entry).slice(0, 400))];
}

/** The commits that were durable when the process was killed at this point. */
function durableAt(commits: readonly SeenCommit[], { side, commit }: KillPoint): SeenCommit[] {
  return commits.slice(0, side === 'before' ? commit - 1 : commit);
}

/** What was durable is there, and nothing of what was not. */
function prefixProblems({ report, lives }: Cycle, durable: readonly SeenCommit[]): string[] {
  const expected = durable.flatMap(({ entries }) => entries);
  const stored = report.entries.map((entry) =>
    'key' in entry && entry.key ? `${entry.type} ${entry.key}` : entry.type,
  );
  const problems: string[] = [];
  if (stored.slice(0, expected.length).join() !== expected.join())
    problems.push(`of ${expected.join(', ')} the journal has ${stored.slice(0, expected.length).join(', ')}`);
  for (const entry of report.entries.slice(expected.length)) {
    if ((entry.type === 'run.started' || entry.type === 'run.resumed') && !entry.owner.startsWith(`life-${lives[1]}-`))
      problems.push(`entry ${entry.sequence}: the run was claimed by ${entry.owner}, which is dead`);
  }
  return problems;
}

/** Tool calls that were begun, and of whose end nothing is known, in a journal of these commits. */
export function cutCalls(durable: readonly SeenCommit[]): Set<string> {
  const cut = new Set<string>();
  for (const entry of durable.flatMap(({ entries }) => entries)) {
    const [type, key = ''] = entry.split(' ') as [string, string?];
    if (type === 'tool.started') cut.add(key);
    else if (type.startsWith('tool.') && !type.startsWith('tool.step')) cut.delete(key);
  }
  return cut;
}
