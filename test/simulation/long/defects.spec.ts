import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';

/** A one-line change that breaks the engine or its contracts, and the seed that shows it. */
interface Defect {
  name: string;
  /** In lib/. */
  file: string;
  find: string;
  replace: string;
  seed: number;
  /** The invariant. */
  violates: string;
}

const defects = JSON.parse(readFileSync('test/simulation/defects.json', 'utf8')) as Defect[];
const MAX_SEEDS = 10_000;

/** The first seed that fails, or null. */
async function firstFailing(defect: Defect, from: number, seeds: number): Promise<number | null> {
  const args = [
    '--defect',
    defect.name,
    '--from',
    `${from}`,
    '--seeds',
    `${seeds}`,
    '--first',
    '--only',
    defect.violates,
  ];
  const ran = promisify(execFile)(process.execPath, ['.config/simulate.mjs', ...args]);
  const { stdout, code } = await ran.then(
    (done) => ({ ...done, code: 0 }),
    (failed: { stdout: string; code: number }) => failed,
  );
  expect([defect.name, code, stdout]).toEqual([defect.name, expect.any(Number), expect.stringContaining(' a second')]);
  return code === 0 ? null : Number(/^seed (\d+):/m.exec(stdout)?.[1]);
}

const found = new Map<string, number | null>();

async function hunt(left: Defect[]): Promise<void> {
  for (let defect = left.shift(); defect; defect = left.shift())
    // Where the engine has changed since, the seed means another history.
    found.set(defect.name, (await firstFailing(defect, defect.seed, 1)) ?? (await firstFailing(defect, 1, MAX_SEEDS)));
}

describe('the simulation can fail', () => {
  beforeAll(async () => {
    const left = [...defects];
    await Promise.all([hunt(left), hunt(left)]);
  }, 1_800_000);

  it('SIM-3: of at least 40 planted defects, each one place in the sources', () => {
    expect(defects.length).toBeGreaterThanOrEqual(40);
    for (const { name, file, find } of defects)
      expect([name, readFileSync(`lib/${file}`, 'utf8').split(find).length]).toEqual([name, 2]);
  });

  it.each(defects)('SIM-3: $name: is found by seed $seed ($violates)', ({ name }) => {
    expect(found.get(name)).toEqual(expect.any(Number));
  });
});
