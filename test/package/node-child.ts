import { spawnSync } from 'node:child_process';

/**
 * Runs source text in a Node process of its own, without this runner's flags, and returns what it printed as JSON.
 * `cwd` decides what bare specifiers resolve to.
 */
export function evaluate<Result>(format: 'esm' | 'cjs', source: string, cwd = process.cwd()): Result {
  const { NODE_OPTIONS: _flagsOfTheRunner, ...env } = process.env;
  const type = format === 'esm' ? 'module' : 'commonjs';
  const child = spawnSync(process.execPath, [`--input-type=${type}`, '-e', source], {
    cwd,
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (child.status !== 0) {
    throw new Error(`A ${format} process in ${cwd} ended with ${child.status ?? child.signal}:\n${child.stderr}`);
  }
  return JSON.parse(child.stdout) as Result;
}
