import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { guardGlobals } from '../guard.js';
import { runHistory } from '../history.js';
import { planOf } from '../plan.js';

const SECONDS = Number(process.env['TEST_SIMULATION_SECONDS'] ?? 60);
/** Each commit tries histories of its own. `npm run simulate -- --from SEED --seeds 1` shows one. */
const FROM = Number(
  process.env['TEST_SIMULATION_SEED'] ??
    Number.parseInt(execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).slice(0, 8), 16),
);
// Kept: the guard takes it away.
const now = performance.now.bind(performance);

let unguard: () => void;
beforeAll(() => void (unguard = guardGlobals()));
afterAll(() => unguard());

describe('simulated histories', () => {
  it(
    `SIM-2: keep every invariant for ${SECONDS} s, from seed ${FROM} on`,
    async () => {
      const startedAt = now();
      let seed = FROM;
      for (; now() - startedAt < SECONDS * 1_000; seed++) {
        const { violation } = await runHistory(planOf(String(seed)));
        expect([seed, violation?.message]).toEqual([seed, undefined]);
      }
      process.stdout.write(`${seed - FROM} histories, from seed ${FROM} on\n`);
    },
    (SECONDS + 60) * 1_000,
  );
});
