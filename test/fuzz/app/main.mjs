/**
 * `node main.mjs KIND ROUNDS SEED [INDEX]`: throws drawn inputs at the application and prints one line of JSON. The first case that breaks a rule ends
 * the process with its index, so that INDEX repeats it alone. A process that ends by itself has failed too.
 */
import { Chance, hash32 } from './chance.mjs';
import { startHost } from './host.mjs';
import { furnish, given, kinds } from './kinds.mjs';
import { turns } from './loop-turns.mjs';

const [kind, rounds, seed, only] = process.argv.slice(2);
const run = kinds[kind];
if (!run) throw new Error(`No kind "${kind}": ${Object.keys(kinds).join(', ')}.`);

/** The store in memory keeps every run. */
const CASES_PER_HOST = 2_500;
/** Characters. Up to here the time of a turn is bounded; above, it may grow with the size and no faster. */
const USUAL = 262_144;
const usual = [];
const large = [];
const keep = (slowest, ms, index) => {
  slowest.push({ ms: Math.round(ms * 10) / 10, index });
  if (slowest.length > 100) slowest.sort((a, b) => b.ms - a.ms).splice(3);
};
let host = null;

const first = only === undefined ? 0 : Number(only);
const end = only === undefined ? Number(rounds) : first + 1;
const begun = performance.now();
for (let index = first; index < end; index++) {
  if (host === null || (only === undefined && index % CASES_PER_HOST === 0)) {
    await host?.close();
    host = await startHost(Math.floor(index / CASES_PER_HOST) % 2 === 0 ? 'express' : 'fastify');
    if (kind === 'http') await furnish(host);
    await new Promise(setImmediate);
  }
  turns.take();
  try {
    await run(host, new Chance(hash32(`${kind} ${seed} ${index}`)));
  } catch (error) {
    console.log(
      JSON.stringify({
        kind,
        seed,
        index,
        failed: String(error?.message ?? error).slice(0, 2_000),
        stack: error?.stack?.split('\n').slice(0, 8),
      }),
    );
    process.exit(1);
  }
  // A case on the store in memory can end within the turn that began it.
  await new Promise(setImmediate);
  const longest = turns.take();
  // The first cases of a host are those that compile it.
  if ((index - first) % CASES_PER_HOST < 50 && only === undefined) continue;
  if (given.size <= USUAL) keep(usual, longest, index);
  else keep(large, (longest * USUAL) / given.size, index);
}
await host.close();
console.log(
  JSON.stringify({
    kind,
    seed,
    cases: end - first,
    seconds: Math.round((performance.now() - begun) / 1_000),
    longestTurns: usual.sort((a, b) => b.ms - a.ms).slice(0, 3),
    longestTurnsPer256KiB: large.sort((a, b) => b.ms - a.ms).slice(0, 3),
  }),
);
process.exit(0);
