// Long trials, run by hand and recorded in docs/reliability.md.
//   npm run campaign                              lists them
//   npm run campaign -- races                     runs one with its usual sizes, and prints the row for docs/reliability.md
//   npm run campaign -- races rounds=1000 seed=7
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus, totalmem } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

const jest = (project, ...paths) => [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  'node_modules/jest/bin/jest.js',
  '--selectProjects',
  project,
  '--runInBand',
  ...paths,
];

/** For each: what it shows, its sizes, and how Node runs it. A campaign with chance in it has a `seed` among its sizes. */
export const CAMPAIGNS = {
  races: {
    shows: 'processes that race for the same run, call, decision and session do everything once, on each database',
    sizes: { rounds: 200 },
    run: ({ rounds }) => ({
      args: jest('races'),
      env: { TEST_RACE_ROUNDS: rounds },
    }),
  },
  crash: {
    shows: 'a process killed before and after every commit loses nothing and repeats no effect, on each database',
    sizes: { sample: 1 },
    run: ({ sample }) => ({
      args: jest('crash'),
      env: { TEST_CRASH_SAMPLE: sample },
    }),
  },
  fuzz: {
    shows:
      'drawn replies, schemas, arguments and requests end no process, and call no tool with what its schema refuses',
    sizes: { rounds: 100_000, seed: 1 },
    run: ({ rounds, seed }) => ({
      args: jest('fuzz'),
      env: { TEST_FUZZ_ROUNDS: rounds, TEST_FUZZ_SEED: seed },
    }),
  },
  soak: {
    shows: 'outages, stopped and stepped clocks, cut connections and full tables: runs end, and nothing happens twice',
    sizes: {},
    run: () => ({
      args: jest('soak'),
      env: {},
    }),
  },
  simulation: {
    shows: 'drawn histories of several processes under faults keep every invariant and come to rest',
    sizes: { seeds: 1_000_000, seed: 1 },
    run: ({ seeds, seed }) => ({
      args: ['--enable-source-maps', '.config/simulate.mjs', '--seeds', `${seeds}`, '--from', `${seed}`],
      env: {},
    }),
  },
  'watch-mode': {
    shows: 'the sample under `nest start --watch` survives saves during model calls, and no effect happens twice',
    sizes: { saves: 10 },
    run: ({ saves }) => ({
      args: jest('soak', 'test/soak/faults/watch-mode.spec.ts'),
      env: { TEST_WATCH_SAVES: saves },
    }),
  },
  hosts: {
    shows: 'the packed package does the main job in every kind of host: Nest, module format, adapter, TypeORM, Node',
    sizes: { only: '' },
    run: ({ only }) => ({
      args: ['.config/hosts.mjs', ...only.split(',').filter(Boolean)],
      env: {},
    }),
  },
  'getting-started': {
    shows: 'the page for new users, command by command, on an empty `nest new`',
    sizes: { nest: '11,12' },
    run: ({ nest }) => ({
      args: ['.config/getting-started.mjs', ...nest.split(',')],
      env: {},
    }),
  },
};

function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

function machine() {
  const model = cpus()[0]?.model.replaceAll(/\(R\)|\(TM\)| Processor| CPU/g, '') ?? 'unknown';
  return `${cpus().length} cores ${model}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.versions.node}`;
}

function duration(ms) {
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** What the trial itself says about its end: its last line, or Jest's count. */
function resultOf(output, status) {
  const lines = stripVTControlCharacters(output).split('\n');
  const tests = lines.filter((line) => line.startsWith('Tests: ')).at(-1);
  const last = (tests ?? lines.filter((line) => line.trim() !== '').at(-1) ?? '').replace(/^Tests:\s+/, '').trim();
  return `${status === 0 ? 'passed' : 'FAILED'}: ${last}`;
}

function list() {
  for (const [name, { shows, sizes }] of Object.entries(CAMPAIGNS)) {
    const given = Object.entries(sizes).map(([key, value]) => `${key}=${value}`);
    console.log(`${name}  ${given.join(' ')}\n    ${shows}`);
  }
}

/** Shows what Node prints while it runs, and keeps it. */
async function run(args, env) {
  const texts = Object.fromEntries(Object.entries(env).map(([key, value]) => [key, String(value)]));
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...texts },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (chunk) => {
    output += chunk;
    process.stdout.write(chunk);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const [status] = await once(child, 'close');
  return { status, output };
}

async function main([name, ...given]) {
  if (!name) {
    list();
    return;
  }
  const campaign = CAMPAIGNS[name];
  if (!campaign) throw new Error(`There is no campaign ${name}; there are ${Object.keys(CAMPAIGNS).join(', ')}.`);
  const sizes = { ...campaign.sizes };
  for (const pair of given) {
    const [key, value = ''] = pair.split('=');
    if (!(key in sizes)) throw new Error(`${name} has no size ${key}; it has ${Object.keys(sizes).join(', ')}.`);
    sizes[key] = value;
  }
  // What is measured is what is committed.
  const commit = git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with changes');
  const { args, env } = campaign.run(sizes);
  const startedAt = Date.now();
  const { status, output } = await run(args, env);
  const { seed = '–', ...others } = sizes;
  const shown = Object.entries(others).flatMap(([key, value]) => (value === '' ? [] : [`${key} ${value}`]));
  const row = [
    new Date().toISOString().slice(0, 10),
    [name, ...shown].join(', '),
    commit,
    machine(),
    seed,
    duration(Date.now() - startedAt),
    resultOf(output, status),
  ];
  console.log(`\n| ${row.join(' | ')} |`);
  process.exitCode = status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
