/** The same request sent to two processes at once, outside and inside transactions of the host. */
import { randomBytes } from 'node:crypto';
import { expect } from '@jest/globals';
import { rounds, ROUNDS, type Arena, type Contender } from './arena.js';
import { describeRaces } from './describe-races.js';
import type { RacePlace } from './race-places.js';
import type { Racer } from './racer.js';

const IDLE = { structure: { worker: false } };

type Ending = 'commit' | 'rollback';

interface Scene {
  name: string;
  /** The requests of both, with the same id. */
  requests: readonly Record<string, unknown>[];
  isEqual: boolean;
}

/** Equal and different requests with ids as they come, in a new session and without one. */
function scenes(race: string, round: number): Scene[] {
  return [true, false].flatMap((inSession) =>
    [true, false].map((isEqual) => {
      const name = `${randomBytes(4).toString('hex')}-${race}-${round}-${inSession ? 'session' : 'none'}-${isEqual ? 'equal' : 'other'}`;
      const request = {
        agent: 'desk',
        requestId: name,
        ...(inSession && { sessionId: name }),
      };
      const prompts = isEqual ? ['one', 'one'] : ['one', 'two'];
      return { name, isEqual, requests: prompts.map((prompt) => ({ ...request, prompt })) };
    }),
  );
}

async function idsOf(arena: Arena, { requests }: Scene): Promise<string[]> {
  const rows = await arena.query(`SELECT id FROM agent_runs WHERE request_id = '${requests[0]?.['requestId']}'`);
  return rows.map(({ id }) => id as string);
}

/** What a host at REPEATABLE READ cannot see, because it was committed since its snapshot, Postgres does not let it write beside. */
const mayRepeat = ({ type, isolation }: RacePlace) => type === 'postgres' && isolation === 'REPEATABLE READ';

describeRaces('submissions', [IDLE, IDLE], (race, place) => {
  // B156
  race('SUB-2: equal requests to two processes are one run, different ones one run and one conflict', async (arena) => {
    await rounds(async (round) => {
      for (const scene of scenes('own', round)) {
        const answers = await arena.atOnce(
          ...arena.racers.map((racer, index) => ({ racer, verb: 'start', args: [scene.requests[index]] })),
        );
        const [id, ...more] = await idsOf(arena, scene);
        expect(more).toEqual([]);
        const codes = answers.map(({ code }) => code).sort();
        expect(codes).toEqual([scene.isEqual ? 'accepted' : 'REQUEST_CONFLICT', 'accepted']);
        const accepted = answers.filter(({ code }) => code === 'accepted').map(({ value }) => value);
        expect(accepted.map((run) => run.id)).toEqual(accepted.map(() => id));
        expect(accepted.filter((run) => run.deduplicated !== true)).toHaveLength(1);
      }
    });
  });

  // SQLite has one connection for a process and one writer for all of them: what waits there waits for the whole transaction of the other.
  if (place.type === 'sqlite') return;

  // InnoDB locks the gap beside a key that was taken by somebody who then rolled back, at any isolation level: two such requests in neighbouring gaps are a
  // deadlock that only the hosts can repeat. Nothing here shall depend on whether ids are neighbours.
  const lanes = place.type === 'mariadb' ? 1 : undefined;
  race(
    'B164, SUB-2: in transactions of the hosts too, of which some are rolled back, and each stays usable',
    async (arena) => {
      await rounds(
        async (round) => {
          const endings: Ending[] = [round % 2 === 0 ? 'commit' : 'rollback', round % 4 < 2 ? 'commit' : 'rollback'];
          for (const scene of scenes('inside', round)) {
            const answers = await arena.atOnce(
              ...arena.racers.map((racer, index) =>
                inside(racer, scene.requests[index], `${scene.name}-${index}`, endings[index]),
              ),
            );
            await checkInside(
              arena,
              scene,
              endings,
              answers.map(({ value }) => value as Outcome),
            );
          }
        },
        ROUNDS,
        lanes,
      );
    },
  );

  race(
    'SUB-4: four transactions of hosts that start runs in one new session get the places 1 to 4, and one of them its head',
    async (arena) => {
      await rounds(async (round) => {
        const sessionId = `${randomBytes(4).toString('hex')}-four-${round}`;
        const request = { agent: 'desk', prompt: 'one', sessionId, enqueue: true };
        const answers = await arena.atOnce(
          ...[0, 1, 2, 3].map((n) =>
            inside(arena.racers[n % 2] as Racer, { ...request, requestId: `r-${n}` }, `${sessionId}-${n}`, 'commit'),
          ),
        );
        const outcomes = answers.map(({ value }) => value as Outcome);
        expect(outcomes.map(({ code }) => code)).toEqual(outcomes.map(() => 'accepted'));
        if (!mayRepeat(place)) expect(outcomes.map(({ repeats }) => repeats)).toEqual([0, 0, 0, 0]);
        const runs = await arena.query(
          `SELECT session_order, status FROM agent_runs WHERE session_id = '${sessionId}' ORDER BY session_order`,
        );
        expect(runs.map((run) => [Number(run.session_order), run.status])).toEqual([
          [1, 'pending'],
          [2, 'queued'],
          [3, 'queued'],
          [4, 'queued'],
        ]);
      });
    },
  );
});

interface Outcome {
  code: string;
  value?: { id: string };
  /** How often the host had to repeat its transaction. */
  repeats: number;
}

function inside(racer: Racer, request: unknown, name: string, ending: Ending = 'commit'): Contender {
  return { racer, verb: 'startInside', args: [request, name, ending] };
}

async function checkInside(arena: Arena, scene: Scene, endings: Ending[], outcomes: Outcome[]): Promise<void> {
  const ids = await idsOf(arena, scene);
  const committed = outcomes.filter((_, index) => endings[index] === 'commit');
  expect(ids).toHaveLength(committed.length > 0 ? 1 : 0);
  const refusal = scene.isEqual ? 'accepted' : 'REQUEST_CONFLICT';
  for (const { code, value } of committed) {
    expect(['accepted', refusal]).toContain(code);
    if (value) expect(value.id).toBe(ids[0]);
  }
  // One of those that committed has made it.
  if (committed.length > 0) expect(committed.map(({ code }) => code)).toContain('accepted');
  expect(outcomes.map(({ repeats }) => repeats)).toEqual([0, 0]);
  const marks = await arena.query(`SELECT name FROM marks WHERE name LIKE '${scene.name}-%' ORDER BY name`);
  expect(marks.map(({ name }) => name)).toEqual(
    endings.flatMap((ending, index) =>
      ending === 'commit' ? [`${scene.name}-${index}-after`, `${scene.name}-${index}-before`] : [],
    ),
  );
}
