/**
 * Inputs that nobody thought of, drawn from a seed, against the built package in processes of their own. `TEST_FUZZ_ROUNDS` is the number of cases of each
 * kind (default 5,000), `TEST_FUZZ_SEED` the seed (default: the commit). A failure names its index: `node test/fuzz/app/main.mjs KIND 1 SEED INDEX`.
 */
import { execFile, execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const ROUNDS = Number(process.env.TEST_FUZZ_ROUNDS ?? 5_000);
const SEED = process.env.TEST_FUZZ_SEED ?? commit();
const MAIN = resolve('test/fuzz/app/main.mjs');

interface Report {
  cases?: number;
  failed?: string;
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return 'none';
  }
}

async function fuzz(kind: string): Promise<Report> {
  const { NODE_OPTIONS: _flagsOfTheRunner, ...env } = process.env;
  const child = promisify(execFile)(process.execPath, [MAIN, kind, String(ROUNDS), SEED], { env, maxBuffer: 1e8 });
  const { stdout, stderr, code } = await child.then(
    (output) => ({ ...output, code: 0 }),
    (error: { stdout: string; stderr: string; code: number | null; signal?: string }) => error,
  );
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  process.stdout.write(`${last}\n`);
  if (!last.startsWith('{')) throw new Error(`The process ended by itself with ${code}:\n${stderr.slice(-4_000)}`);
  return JSON.parse(last) as Report;
}

describe(`fuzz, seed ${SEED}`, () => {
  it.concurrent.each([
    ['replies', 'no reply of a model ends the process, and no call of a bad one runs'],
    ['schemas', 'no schema of a model and no answer to it ends the process'],
    ['arguments', 'a tool gets arguments that its schema accepts, or is not called'],
    ['http', 'no request is answered with a fault of ours'],
  ])(
    '%s: %s',
    async (kind) => {
      expect(await fuzz(kind)).toMatchObject({ cases: ROUNDS });
    },
    3_600_000,
  );
});
