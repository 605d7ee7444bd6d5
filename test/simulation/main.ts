// npm run simulate -- --seeds N [--from N] [--only I3] [--seconds S]
import { guardGlobals } from './guard.js';
import { runHistory } from './history.js';
import { planOf } from './plan.js';

const argument = (name: string): string | undefined => {
  const place = process.argv.indexOf(`--${name}`);
  return place < 0 ? undefined : process.argv[place + 1];
};

const from = Number(argument('from') ?? 1);
const seeds = Number(argument('seeds') ?? 1_000);
const seconds = Number(argument('seconds') ?? Infinity);
// Kept: the guard takes the clock away.
const now = performance.now.bind(performance);
const startedAt = now();
const failed: string[] = [];
let count = 0;
const unguard = guardGlobals();
for (let seed = from; seed < from + seeds; seed++) {
  if (now() - startedAt > seconds * 1_000) break;
  const { violation, timeline } = await runHistory(planOf(String(seed)));
  count += 1;
  if (!violation) continue;
  failed.push(`${seed}: ${violation.message}`);
  console.log(`seed ${seed}: ${violation.message}`);
  if (process.argv.includes('--show')) console.log(timeline.join('\n'));
}
unguard();
const took = (now() - startedAt) / 1_000;
console.log(
  `${count} histories in ${took.toFixed(1)} s, ${(count / took).toFixed(0)} a second; ${failed.length} failed`,
);
process.exitCode = failed.length > 0 ? 1 : 0;
