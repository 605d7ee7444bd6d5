/** A database and the processes that race on it; and the eyes of the parent, which look at what came of it. */
import { strict as assert } from 'node:assert';
import type { Interaction } from '../../../lib/contracts/interaction.js';
import type { RunStore } from '../../../lib/contracts/ports/run-store.port.js';
import type { RunRecord } from '../../../lib/contracts/run.js';
import type { RunStatus } from '../../../lib/contracts/run-status.js';
import type { DatabaseType } from '../../../lib/stores/typeorm/dialect.js';
import { assertSound } from '../../support/sound-journal.js';
import { rowOf } from '../../support/journal-of.js';
import type { OpenPlace, RacePlace } from './race-places.js';
import { Racer, type Answer, type Effect, type RacerOptions } from './racer.js';

/** How often each race is run. */
export const ROUNDS = Number(process.env['TEST_RACE_ROUNDS'] ?? 200);

/** Rounds in progress at a time: what one waits for, another one uses. */
const LANES = 4;
/** Until every contender has heard of it. */
const HEARD_MS = 3;
const JITTER_MS = 3;

export type RacerSettings = Pick<Partial<RacerOptions>, 'structure' | 'options'>;

/** A racer, what it is to do, and how much later than the signal. */
export interface Contender {
  racer: Racer;
  verb: string;
  args: unknown[];
  lateMs?: number;
  /** It may lose by STORE_CONFLICT; by default no caller may. */
  mayConflict?: boolean;
}

export class Arena {
  private constructor(
    readonly place: RacePlace,
    private readonly opened: OpenPlace,
    readonly racers: readonly Racer[],
  ) {}

  static async open(place: RacePlace, settings: readonly RacerSettings[]): Promise<Arena> {
    const opened = await place.open();
    // Rows of the host, and what its tools leave outside of all journals.
    for (const table of ['marks (name varchar(191))', 'ledger (operation_id varchar(191), process varchar(191))'])
      await opened.dataSource.query(`CREATE TABLE ${table}`);
    const racers = await Promise.all(
      settings.map(({ structure = {}, options = {} }) =>
        Racer.start({ url: opened.url, isolation: place.isolation, poolSize: 10, structure, options }),
      ),
    );
    return new Arena(place, opened, racers);
  }

  get store(): RunStore {
    return this.opened.store;
  }

  get databaseType(): DatabaseType {
    return this.opened.dataSource.options.type as DatabaseType;
  }

  query(sql: string): Promise<any[]> {
    return this.opened.dataSource.query(sql);
  }

  /** What was done for a run until now, in whatever process: what a racer tells comes in order, so an answer comes after all it told before. */
  async effectsOf(runId: string): Promise<Effect[]> {
    await Promise.all(this.racers.map((racer) => racer.do('answer')));
    return this.racers.flatMap(({ effects }) => effects.get(runId) ?? []);
  }

  /** All of them at one moment, give or take the jitter. */
  async atOnce(...contenders: Contender[]): Promise<Answer[]> {
    const signal = now() + HEARD_MS;
    return Promise.all(
      contenders.map(({ racer, verb, args, lateMs = 0, mayConflict }) =>
        racer.order(verb, args, signal + lateMs + Math.random() * JITTER_MS, mayConflict),
      ),
    );
  }

  /** The run's open asks once there are so many, in call order. */
  async asksOf(runId: string, count: number): Promise<Interaction[]> {
    for (const end = Date.now() + 20_000; ; await new Promise((next) => setTimeout(next, 2))) {
      const { items } = await this.store.interactions({ runId, statuses: ['pending'], limit: 100 });
      if (items.length === count) return items.sort((a, b) => (a.operationKey < b.operationKey ? -1 : 1));
      if (Date.now() > end) throw new Error(`run ${runId} has ${items.length} open asks, not ${count}`);
    }
  }

  /** The run once it has one of these statuses. */
  async reaches(runId: string, ...statuses: RunStatus[]): Promise<RunRecord> {
    const end = Date.now() + 20_000;
    for (let pauseMs = 2; ; pauseMs = Math.min(pauseMs * 1.5, 20)) {
      const run = await rowOf(this.store, runId);
      if (statuses.includes(run.status)) return run;
      if (Date.now() > end) throw new Error(`run ${runId} is ${run.status}, not ${statuses.join(' or ')}`);
      await new Promise((next) => setTimeout(next, pauseMs));
    }
  }

  /** What holds of every run, whoever won. */
  async assertAllSound(runIds: readonly string[]): Promise<void> {
    const left = [...runIds];
    const look = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await assertSound(this.store, id);
    };
    await Promise.all(Array.from({ length: 8 }, look));
    assert.equal((await this.store.metrics()).offenders, 0, 'no run is against I11');
  }

  /** Both outcomes of a race were met; a few rounds may be lucky. */
  expectBoth(outcomes: readonly string[]): void {
    if (ROUNDS >= 50) assert.equal(new Set(outcomes).size, 2, `of ${outcomes.length} rounds, all ended ${outcomes[0]}`);
  }

  async reports(): Promise<{ logged: string[]; conflicts: Record<string, number> }[]> {
    return Promise.all(this.racers.map((racer) => racer.do('report')));
  }

  async close(): Promise<void> {
    await Promise.all(this.racers.map((racer) => racer.stop()));
    await this.opened.drop();
  }
}

/** Plays all rounds of a race, several at a time. @throws what the first failed round threw, when the others have ended */
export async function rounds<T>(play: (round: number) => Promise<T>, count = ROUNDS, lanes = LANES): Promise<T[]> {
  const results: T[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const lane = async () => {
    while (next < count && failures.length === 0) {
      const round = next++;
      await play(round).then(
        (result) => (results[round] = result),
        (error: unknown) => failures.push(error),
      );
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  if (failures.length > 0) throw failures[0];
  return results;
}

/** Ms of the clock that all processes of the machine share. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
