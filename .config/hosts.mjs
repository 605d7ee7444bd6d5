// The packed package in fresh host applications, each with its own node_modules from the registry and the install lines of docs/guide/getting-started.md.
//   node .config/hosts.mjs                 all of them
//   node .config/hosts.mjs nest-11-express those whose names contain one of the words
// Each is type-checked and compiled against its own packages, does the main job over SIGKILL and SIGTERM, and runs a test of the host where it has a runner.
// Needs MariaDB and PostgreSQL on their usual ports, or TEST_MARIADB_URL and TEST_POSTGRES_URL.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { DONE, hostSource, mainJob } from '../test/package/hosts/main-job.mjs';
import { installLines, pack, PAGE } from './getting-started.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const require = createRequire(import.meta.url);

/** `typeorm` replaces the version of the page's line, `schedule: null` leaves the package out. Without `node` it is this process's. */
const HOSTS = [
  {
    name: 'nest-11-express-sqlite-jest',
    nest: '11',
    adapter: 'express',
    database: 'sqlite',
    typeorm: '0.3.26',
    runner: 'jest',
  },
  { name: 'nest-11-fastify-mariadb-vitest', nest: '11', adapter: 'fastify', database: 'mariadb', runner: 'vitest' },
  { name: 'nest-11-express-postgres-node22', nest: '11', adapter: 'express', database: 'postgres', node: '22' },
  { name: 'nest-11-express-sqlite-schedule5', nest: '11', adapter: 'express', database: 'sqlite', schedule: '5' },
  { name: 'nest-12-express-sqlite-vitest', nest: '12', adapter: 'express', database: 'sqlite', runner: 'vitest' },
  { name: 'nest-12-fastify-postgres-node24', nest: '12', adapter: 'fastify', database: 'postgres', node: '24' },
  { name: 'nest-12-fastify-mariadb-node22', nest: '12', adapter: 'fastify', database: 'mariadb', node: '22' },
  { name: 'nest-12-express-sqlite-no-schedule', nest: '12', adapter: 'express', database: 'sqlite', schedule: null },
];

const RUNNERS = {
  jest: { packages: ['jest@30', 'ts-jest@29', 'typescript@5'], command: ['jest'] },
  vitest: { packages: ['vitest'], command: ['vitest', 'run'] },
};

/** A test as the host's own people would write it. */
const HOST_TEST = `import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Agent, AgentRunsModule, AgentTool, RunService } from 'nestjs-agent-runs';
import { scriptedModel } from 'nestjs-agent-runs/testing';
// vitest: import { expect, it } from 'vitest';

@Injectable()
class Tools {
  @AgentTool({ name: 'look', description: 'Looks.', input: {}, recovery: 'safe' })
  look() {
    return { seen: true };
  }
}

@Agent({ name: 'support', version: '1', instructions: 'Help.', tools: [Tools] })
class SupportAgent {}

it('runs the agent', async () => {
  const model = scriptedModel([{ calls: [{ name: 'look' }] }, { text: 'Seen.' }]);
  const testing = await Test.createTestingModule({
    imports: [AgentRunsModule.forRoot({ trigger: false, models: { default: model } })],
    providers: [SupportAgent, Tools],
  }).compile();
  await testing.init();
  const run = await testing.get(RunService).startAndWait({ agent: 'support', prompt: 'Look.' });
  expect(run.output).toBe('Seen.');
  await testing.close();
});
`;

const DRIVERS = { sqlite: 'better-sqlite3@12', mariadb: 'mysql2', postgres: 'pg' };

function run(command, args, cwd, env = {}) {
  const { NODE_OPTIONS: _ours, ...inherited } = process.env;
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env: { ...inherited, ...env }, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout + stderr;
}

/** The packages of the page's lines, as this host takes them. */
function packagesOf(host, tarball) {
  return installLines(readFileSync(path.join(root, PAGE), 'utf8'), host.nest)
    .flatMap((line) => line.split(' ').slice(2))
    .flatMap((word) => {
      if (word === 'nestjs-agent-runs') return [tarball];
      if (word.startsWith('better-sqlite3')) return [DRIVERS[host.database]];
      if (word.startsWith('typeorm@') && host.typeorm) return [`typeorm@${host.typeorm}`];
      if (word.startsWith('@nestjs/schedule@') && host.schedule === null) return [];
      if (word.startsWith('@nestjs/schedule@') && host.schedule) return [`@nestjs/schedule@${host.schedule}`];
      return [word];
    });
}

/** Installs what a Nest application has, and then what the page says. @returns warnings about engines that came with the second */
function install(host, directory, tarball) {
  const nest = ['common', 'core', 'testing', `platform-${host.adapter}`].map((name) => `@nestjs/${name}@${host.nest}`);
  const runner = host.runner ? RUNNERS[host.runner].packages : [];
  const npm = (...packages) =>
    run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', ...packages], directory);
  const before = npm(...nest, 'reflect-metadata', 'rxjs@7', ...runner);
  const after = npm(...packagesOf(host, tarball));
  // Compiling it takes minutes; ours is of the same version.
  if (host.database === 'sqlite') {
    const build = 'node_modules/better-sqlite3/build';
    cpSync(path.join(root, build), path.join(directory, build), { recursive: true });
  }
  const engines = (text) => [...text.matchAll(/EBADENGINE\s+package: '(.+)'/g)].map(([, name]) => name);
  return engines(after).filter((name) => !engines(before).includes(name));
}

function compile(host, directory) {
  mkdirSync(path.join(directory, 'src'));
  writeFileSync(path.join(directory, 'src/main.ts'), hostSource({ ...host, schedule: host.schedule !== null }));
  const compilerOptions = {
    target: 'ES2023',
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    esModuleInterop: true,
    strict: true,
    skipLibCheck: true,
    rootDir: 'src',
    outDir: 'dist',
    types: ['node'],
    typeRoots: [path.join(root, 'node_modules/@types')],
  };
  writeFileSync(path.join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
  // Before the test of the host is written, which has globals of its runner.
  run(process.execPath, [path.join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'], directory);
}

function testHost(host, directory) {
  if (!host.runner) return;
  const isVitest = host.runner === 'vitest';
  const source = isVitest ? HOST_TEST.replace('// vitest: ', '') : HOST_TEST;
  writeFileSync(path.join(directory, 'src/agent.spec.ts'), source);
  if (!isVitest) {
    const manifest = JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8'));
    // As `nest new` sets it up; types are checked above.
    manifest.jest = { rootDir: 'src', transform: { '^.+\\.ts$': ['ts-jest', { diagnostics: false }] } };
    writeFileSync(path.join(directory, 'package.json'), JSON.stringify(manifest));
  }
  run('npx', RUNNERS[host.runner].command, directory, { CI: 'true' });
}

const nodes = new Map();

/** Node of that major version, from the npm package `node`. */
function nodeOf(box, major) {
  if (!major) return undefined;
  if (!nodes.has(major)) {
    const directory = path.join(box, `node-${major}`);
    mkdirSync(directory);
    writeFileSync(path.join(directory, 'package.json'), '{"private":true}');
    run('npm', ['install', '--no-audit', '--no-fund', `node@${major}`], directory);
    nodes.set(major, path.join(directory, 'node_modules/node/bin/node'));
  }
  return nodes.get(major);
}

/** A database of the host's own. @returns what `DATABASE` says, and how to get rid of it */
async function databaseOf(host, directory) {
  const name = `agent_runs_host_${process.pid}_${Date.now()}`;
  if (host.database === 'sqlite') return { DATABASE: path.join(directory, 'app.sqlite'), drop: async () => undefined };
  const isMariadb = host.database === 'mariadb';
  const url = new URL(
    (isMariadb ? process.env.TEST_MARIADB_URL : process.env.TEST_POSTGRES_URL) ??
      (isMariadb ? 'mysql://root@127.0.0.1:3306' : 'postgres://postgres@127.0.0.1:5432'),
  );
  const execute = async (sql) => {
    if (isMariadb) {
      const connection = await require('mysql2/promise').createConnection(url.href);
      await connection.query(sql);
      await connection.end();
    } else {
      const { Client } = require('pg');
      const client = new Client({ connectionString: new URL('/postgres', url).href });
      await client.connect();
      await client.query(sql);
      await client.end();
    }
  };
  await execute(`CREATE DATABASE ${name}${isMariadb ? ' CHARACTER SET utf8mb4' : ''}`);
  const own = new URL(`/${name}`, url);
  if (isMariadb) own.searchParams.set('charset', 'utf8mb4');
  return { DATABASE: own.href, drop: () => execute(`DROP DATABASE ${name}`) };
}

async function tryHost(host, box, tarball) {
  const directory = path.join(box, host.name);
  mkdirSync(directory);
  const type = host.nest === '11' ? 'commonjs' : 'module';
  writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ name: host.name, private: true, type }));
  const engines = install(host, directory, tarball);
  if (engines.length > 0) throw new Error(`The install lines bring packages for another Node: ${engines.join(', ')}`);
  compile(host, directory);
  testHost(host, directory);
  const { drop, ...env } = await databaseOf(host, directory);
  try {
    const done = await mainJob({ main: path.join(directory, 'dist/main.js'), node: nodeOf(box, host.node), env });
    if (!isDeepStrictEqual(done, DONE)) throw new Error(JSON.stringify(done));
  } finally {
    await drop();
  }
}

const words = process.argv.slice(2);
const chosen = HOSTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
const box = mkdtempSync(path.join(tmpdir(), 'agent-runs-hosts-'));
let failed = 0;
try {
  mkdirSync(path.join(box, 'pack'));
  const tarball = pack(path.join(box, 'pack'));
  for (const host of chosen) {
    const startedAt = Date.now();
    try {
      await tryHost(host, box, tarball);
      console.log(`passed  ${host.name}  ${Math.round((Date.now() - startedAt) / 1000)} s`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${host.name}\n${error.message}`);
    }
    rmSync(path.join(box, host.name), { recursive: true, force: true });
  }
} finally {
  rmSync(box, { recursive: true, force: true });
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
