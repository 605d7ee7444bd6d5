import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { hostSource } from './hosts/host-source.js';
import { DONE, mainJob, transpiledHost } from './hosts/main-job.mjs';
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

describe('A host of the built package', () => {
  // Beneath node_modules, where the host's packages are found and Git looks away.
  const places = { 11: join(nest11, 'node_modules/.host'), 12: resolve('node_modules/.nestjs-agent-runs-host') };
  beforeAll(() => installInto(places[12]), 60_000);
  afterAll(() => Object.values(places).forEach((place) => rmSync(place, { recursive: true, force: true })));

  it.each([
    [11, 'cjs', 'express'],
    [12, 'esm', 'fastify'],
  ] as const)(
    'on NestJS %s (%s, %s) does the main job over SIGKILL and SIGTERM, and ends',
    async (nest, format, adapter) => {
      const place = places[nest];
      mkdirSync(place, { recursive: true });
      const main = join(place, format === 'cjs' ? 'main.cjs' : 'main.mjs');
      writeFileSync(main, transpiledHost({ adapter, database: 'sqlite' }, format));
      expect(await mainJob({ main, env: { DATABASE: join(place, 'app.sqlite') } })).toEqual(DONE);
    },
    180_000,
  );
});
