// What a history is made of, all drawn from the seed before it begins: each part can be left out and the rest stays as it is, which is how a failing history
// is shortened.
import type { Isolation } from './sim-database.js';
import type { CallFault, FaultAt, Port } from './sim-process.js';
import { Random } from './world.js';

export interface PlannedProcess {
  rate: number;
  offset: number;
  /** Registers another definition of the agents, with a laxer policy. */
  isLax: boolean;
}

export interface PlannedRun {
  task: string;
  turns: number;
  agent: 'serial' | 'parallel';
  sessionId: string | null;
  /** Tokens; null = no budget. */
  budget: number | null;
  deadlineMs: number | null;
}

export type Verb = 'start' | 'cancel' | 'interrupt' | 'resume' | 'take over' | 'steer' | 'retry' | 'restart' | 'grant';

export interface Action {
  at: number;
  verb: Verb;
  /** Of which run. */
  task: string;
  /** In which process. */
  process: number;
}

export type WorldFault =
  | { at: number; kind: 'outage'; ms: number }
  | { at: number; kind: 'clock set'; process: number; ms: number }
  | { at: number; kind: 'drain'; process: number }
  | { at: number; kind: 'kill'; process: number }
  | { at: number; kind: 'stop'; process: number; ms: number };

export interface Plan {
  seed: string;
  isolation: Isolation;
  /** Whether a run goes on by itself when its last interaction is decided. */
  resumes: 'automatic' | 'manual';
  processes: PlannedProcess[];
  runs: PlannedRun[];
  actions: Action[];
  faults: FaultAt[];
  worldFaults: WorldFault[];
}

export const LEASE_MS = 1_500;
/** When the faults and the callers stop. */
export const CALM_AT = 6_000;

/** How far into a history a call of each port lies at most; most are made earlier. */
const CALLS: Readonly<Record<Port | 'any', number>> = {
  append: 25,
  transition: 80,
  create: 8,
  read: 120,
  heartbeat: 30,
  transaction: 4,
  model: 10,
  tool: 10,
  any: 300,
};

const FAULTS: readonly CallFault[] = [
  'killed',
  'killed after',
  'stopped',
  'stopped after',
  'lost',
  'answer lost',
  'late',
  'conflict',
];

const VERBS: readonly Verb[] = [
  'start',
  'start',
  'cancel',
  'interrupt',
  'resume',
  'resume',
  'take over',
  'steer',
  'steer',
  'retry',
  'restart',
  'grant',
];

export function planOf(seed: string): Plan {
  const random = new Random(`plan/${seed}`);
  const processes = Array.from({ length: random.between(2, 3) }, (_, index) => ({
    rate: random.chance(0.3) ? 0.98 + random.next() * 0.04 : 1,
    offset: random.chance(0.3) ? random.between(-3_600_000, 3_600_000) : 0,
    isLax: index > 0 && random.chance(0.3),
  }));
  const sessions = random.chance(0.5) ? ['session-1'] : [null, 'session-1'];
  const agent = random.chance(0.75) ? 'serial' : 'parallel';
  const runs = Array.from({ length: random.between(1, 3) }, (_, index): PlannedRun => ({
    task: `t${index + 1}`,
    turns: random.between(1, 3),
    agent,
    sessionId: random.pick(sessions),
    budget: random.chance(0.12) ? random.between(10, 60) : null,
    deadlineMs: random.chance(0.08) ? random.between(1_000, 6_000) : null,
  }));
  const process = (): number => random.between(0, processes.length - 1);
  const starts = runs.map(({ task }): Action => ({
    at: random.between(0, 2_500),
    verb: 'start',
    task,
    process: process(),
  }));
  const others = Array.from({ length: random.between(0, 4) }, (): Action => ({
    at: random.between(200, CALM_AT - 1_000),
    verb: random.pick(VERBS),
    task: random.pick(runs).task,
    process: process(),
  }));
  const ports = Object.keys(CALLS) as (Port | 'any')[];
  const faults = Array.from({ length: random.between(0, 5) }, (): FaultAt => {
    const port = random.pick(ports);
    // The early ones more often: not every history has that many calls.
    const nth = 1 + Math.floor(CALLS[port] * random.next() * random.next());
    return { port, nth, fault: random.pick(FAULTS), ms: random.between(100, 3 * LEASE_MS) };
  });
  const worldFaults = Array.from({ length: random.between(0, 2) }, (): WorldFault => {
    const at = random.between(100, CALM_AT - 2_000);
    const ms = random.between(200, 2 * LEASE_MS);
    switch (random.between(0, 4)) {
      case 0:
        return { at, kind: 'outage', ms };
      case 1:
        return { at, kind: 'clock set', process: process(), ms: random.between(-600_000, 600_000) };
      case 2:
        return { at, kind: 'drain', process: process() };
      case 3:
        return { at, kind: 'kill', process: process() };
      default:
        return { at, kind: 'stop', process: process(), ms };
    }
  });
  return {
    seed,
    isolation: random.chance(0.8) ? 'read committed' : 'single writer',
    resumes: random.chance(0.9) ? 'automatic' : 'manual',
    processes,
    runs,
    actions: [...starts, ...others],
    faults,
    worldFaults,
  };
}
