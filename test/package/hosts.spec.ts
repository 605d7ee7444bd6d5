import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { hostSource } from './hosts/host-source.js';
import { evaluate } from './node-child.js';

const boot = resolve('test/package/hosts/boot.cjs');
const nest11 = resolve('test/package/hosts/nest-11');

/** Unpacks what would be published into the host's own node_modules, where its peers are the host's Nest 11. */
function installInto(host: string) {
  const target = join(host, 'node_modules/nestjs-agent-runs');
  const box = mkdtempSync(join(tmpdir(), 'agent-runs-pack-'));
  try {
    execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', box], { stdio: 'ignore' });
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    const [tarball = ''] = readdirSync(box);
    execFileSync('tar', ['-xzf', join(box, tarball), '--strip-components=1', '-C', target]);
  } finally {
    rmSync(box, { recursive: true, force: true });
  }
}

beforeAll(() => installInto(nest11), 60_000);

afterAll(() => rmSync(join(nest11, 'node_modules/nestjs-agent-runs'), { recursive: true, force: true }));

describe.each(['esm', 'cjs'] as const)('The built package, as %s', (format) => {
  it('boots in a NestJS 12 host', () => {
    expect(evaluate(format, hostSource[format](boot))).toEqual({ nest: '12', start: 'function' });
  });

  it('boots in a NestJS 11 host', () => {
    expect(evaluate(format, hostSource[format](boot), nest11)).toEqual({ nest: '11', start: 'function' });
  });
});
