import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

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
  const args = ['--defect', defect.name, '--from', `${from}`, '--seeds', `${seeds}`, '--first'];
  const ran = promisify(execFile)(process.execPath, ['.config/simulate.mjs', ...args]);
  const { stdout, code } = await ran.then(
    (done) => ({ ...done, code: 0 }),
    (failed: { stdout: string; code: number }) => failed,
  );
  expect([defect.name, code, stdout]).toEqual([defect.name, expect.any(Number), expect.stringContaining(' a second')]);
  return code === 0 ? null : Number(/^seed (\d+):/m.exec(stdout)?.[1]);
}

describe('the simulation can fail', () => {
  it('SIM-3: each planted defect is one place in the sources', () => {
    for (const { name, file, find } of defects)
      expect([name, readFileSync(`lib/${file}`, 'utf8').split(find).length]).toEqual([name, 2]);
  });

  it.each(defects)(
    'SIM-3: $name: found by seed $seed ($violates)',
    async (defect) => {
      // Where the engine has changed since, the seed means another history.
      const found = (await firstFailing(defect, defect.seed, 1)) ?? (await firstFailing(defect, 1, MAX_SEEDS));
      expect(found).not.toBeNull();
    },
    600_000,
  );
});
