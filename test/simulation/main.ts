// The command `npm run simulate`, see .config/simulate.mjs.
import { guardGlobals } from './guard.js';
import { runHistory, type Outcome } from './history.js';
import { planOf, type Plan } from './plan.js';
import { partsOf, shrink } from './shrink.js';

interface Options {
  from: number;
  seeds: number;
  seconds: number;
  /** Only violations of this invariant count. */
  only: string | null;
  /** Ends with the first that fails, unshortened. */
  first: boolean;
  /** Each history a second time: it must be the same, byte for byte. */
  twice: boolean;
}

/** @returns the exit code */
export async function main(given: readonly string[]): Promise<number> {
  const argument = (name: string): string | undefined => {
    const place = given.indexOf(`--${name}`);
    return place < 0 ? undefined : given[place + 1];
  };
  // Kept: the guard takes them away.
  const now = performance.now.bind(performance);
  const unguard = guardGlobals();
  const seed = argument('show');
  if (seed !== undefined) {
    const outcome = await runHistory(planOf(seed));
    console.log(outcome.timeline.join('\n'));
    return outcome.violation ? 1 : 0;
  }
  const seconds = argument('seconds');
  const failed = await search(
    {
      from: Number(argument('from') ?? 1),
      seeds: Number(argument('seeds') ?? (seconds === undefined ? 1_000 : Infinity)),
      seconds: Number(seconds ?? Infinity),
      only: argument('only') ?? null,
      first: given.includes('--first'),
      twice: given.includes('--twice'),
    },
    now,
  );
  unguard();
  return failed > 0 ? 1 : 0;
}

async function search(options: Options, now: () => number): Promise<number> {
  const startedAt = now();
  const elapsed = (): number => (now() - startedAt) / 1_000;
  let count = 0;
  let failed = 0;
  for (let seed = options.from; seed < options.from + options.seeds && elapsed() < options.seconds; seed++) {
    const plan = planOf(String(seed));
    const outcome = await runHistory(plan);
    count += 1;
    if (options.twice && (await runHistory(plan)).digest !== outcome.digest) {
      failed += 1;
      console.log(`seed ${seed}: the second time it was another history`);
    }
    if (!outcome.violation || (options.only !== null && outcome.violation.id !== options.only)) continue;
    failed += 1;
    console.log(`seed ${seed}: ${outcome.violation.message.split('\n', 1)[0]}`);
    if (options.first) break;
    await tell(plan, outcome);
  }
  const took = elapsed();
  console.log(`${count} histories in ${took.toFixed(1)} s, ${(count / took).toFixed(0)} a second; ${failed} failed`);
  return failed;
}

/** The shortest history that fails in the same way, as a timeline. */
async function tell(plan: Plan, { violation }: Outcome): Promise<void> {
  const short = await shrink(plan, violation?.id as string);
  const { timeline } = await runHistory(short);
  console.log(
    `  shortened to ${partsOf(short).length} parts: ${partsOf(short)
      .map(({ text }) => text)
      .join(' | ')}`,
  );
  for (const line of timeline) if (!isIdle(line)) console.log(`  ${line}`);
}

/** What happens all the time and says nothing. */
function isIdle(line: string): boolean {
  return / (?:due|heartbeat|overdue|live workers)$/.test(line);
}
