/** One suite of races for every place. After each race nobody must have been told of a conflict of the database, in an answer or in a log. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeIf } from '../../support/describe-if.js';
import { ServerSubject } from '../../stores/typeorm/server-subject.js';
import { Arena, type RacerSettings } from './arena.js';
import { racePlaces, type RacePlace } from './race-places.js';

const TIMEOUT_MS = 180_000;

/** What a worker may say when a race is lost: its run was cancelled or taken over. */
const LOSERS_WORDS = /^warn: (lost ownership of a run|a late result was discarded)/;

/**
 * Conflicts that cost nobody anything but a moment: somebody else had taken a key; SQLite has one writer at a time; a session at REPEATABLE READ cannot go on
 * where it had to wait for somebody's COMMIT (Postgres says 40001, MariaDB 11.6 and later 1020). On MariaDB submissions that share an INSERT do not wait for a
 * key that somebody is inserting, and go alone then (1205, with a timeout of 0). Deadlocks are not among them.
 */
function everyday({ isolation, type }: RacePlace): string[] {
  const codes = [
    'LOST_RACE',
    // A batch with a key that somebody had taken: its members go one by one.
    'BATCH_FAILED',
    'SQLITE_BUSY',
    'SQLITE_BUSY_SNAPSHOT',
    ...(type === 'mariadb' ? ['ER_LOCK_WAIT_TIMEOUT'] : []),
  ];
  return isolation === 'REPEATABLE READ' ? [...codes, '40001', 'ER_CHECKREAD'] : codes;
}

/** @param mayLog what workers may log in this race besides the loss of a run */
export type Race = (title: string, play: (arena: Arena) => Promise<void>, mayLog?: RegExp) => void;

/** @param declare calls `race` for each race */
export function describeRaces(
  title: string,
  settings: readonly RacerSettings[],
  declare: (race: Race, place: RacePlace) => void,
): void {
  for (const place of racePlaces) {
    describeIf(place.isThere)(`${title}: processes on ${place.name}`, () => {
      let arena: Arena;
      let before: Record<string, number>[];
      beforeAll(async () => {
        arena = await Arena.open(place, settings);
        before = settings.map(() => ({}));
      }, TIMEOUT_MS);
      afterAll(() => arena?.close(), TIMEOUT_MS);

      declare((name, play, mayLog) => {
        it(
          name,
          async () => {
            await play(arena);
            const reports = await arena.reports();
            const met = reports.flatMap(({ conflicts }, index) =>
              Object.entries(conflicts).filter(([code, count]) => count > (before[index]?.[code] ?? 0)),
            );
            before = reports.map(({ conflicts }) => conflicts);
            const said = reports
              .flatMap(({ logged }) => logged)
              .filter((line) => !LOSERS_WORDS.test(line) && !mayLog?.test(line));
            expect(said).toEqual([]);
            expect(met.map(([code]) => code).filter((code) => !everyday(place).includes(code))).toEqual([]);
          },
          TIMEOUT_MS,
        );
      }, place);
    });
  }
  afterAll(() => ServerSubject.dropDatabases(), 60_000);
}
