// Builds what the compiled tests, the sample and the bench run: the package in both formats, then the sample.
//   node .config/build.mjs             always
//   node .config/build.mjs --if-stale  only when a source is newer than the last complete build
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const stamp = path.join(root, 'dist/.built');
const lock = path.join(root, 'node_modules/.nestjs-agent-runs-build');
const inputs = [
  'lib',
  'packages/contract/lib',
  'sample-app/src',
  'sample-app/tsconfig.json',
  'package.json',
  'tsconfig.json',
  'nest-cli.json',
  '.config',
];
const lockTimeoutMs = 180_000;

function newestChange(target) {
  const stat = fs.statSync(target, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  // The directory's own time counts too: it tells of a deleted file.
  return fs
    .readdirSync(target)
    .reduce((newest, name) => Math.max(newest, newestChange(path.join(target, name))), stat.mtimeMs);
}

function isStale() {
  const builtAt = fs.statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return inputs.some((input) => newestChange(path.join(root, input)) > builtAt);
}

function run(script, ...args) {
  const { status } = spawnSync(process.execPath, [path.join(root, 'node_modules', script), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error(`The build failed in: ${path.basename(script)} ${args.join(' ')}`);
}

/** Removes what an earlier build left behind for a source that is gone, so that it is neither loaded nor published. */
function prune(outDir, sources) {
  for (const file of fs.readdirSync(outDir, { recursive: true, encoding: 'utf8' })) {
    const source = file.replace(/(?:\.d\.ts|\.js)$/, '.ts');
    if (source !== file && !fs.existsSync(path.join(root, sources, source))) fs.rmSync(path.join(outDir, file));
  }
}

/**
 * One declaration file for each entry point, plus what entry points share: what no entry point exports has no typings.
 * Both formats get the same files, and each format's package.json says what they are.
 */
async function rollUpTypes(folder) {
  const dist = path.join(folder, 'dist');
  const { exports } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const names = Object.values(exports).flatMap((entry) => (entry.import ? path.basename(entry.import.types) : []));
  const bundle = await rollup({
    input: Object.fromEntries(names.map((name) => [path.basename(name, '.d.ts'), path.join(dist, 'types', name)])),
    external: (id) => !/^[./]/.test(id) && !path.isAbsolute(id),
    plugins: [dts()],
    // A base class that no entry point exports is not for hosts to name. Whatever else is odd fails the build.
    onwarn: (warning) => {
      if (!warning.message.includes('private shared type exports')) throw new Error(warning.message);
    },
  });
  for (const format of ['esm', 'cjs']) {
    const dir = path.join(dist, format);
    for (const file of fs.readdirSync(dir).filter((name) => name.endsWith('.d.ts'))) fs.rmSync(path.join(dir, file));
    await bundle.write({ dir, entryFileNames: '[name].d.ts', chunkFileNames: 'shared-[hash].d.ts' });
  }
  await bundle.close();
}

/** Both formats of one package: a JavaScript file for each source, declarations for each entry point. */
async function buildPackage(folder, config, sources) {
  const dist = path.join(root, folder, 'dist');
  for (const format of ['esm', 'cjs']) {
    run('typescript/bin/tsc', '-p', `.config/${config}${format}.json`);
    prune(path.join(dist, format), sources);
  }
  prune(path.join(dist, 'types'), sources);
  await rollUpTypes(path.join(root, folder));
  fs.writeFileSync(path.join(dist, 'cjs/package.json'), '{ "type": "commonjs" }\n');
}

async function build() {
  const startedAt = new Date();
  fs.rmSync(stamp, { force: true });
  await buildPackage('.', 'tsconfig.', 'lib');
  await buildPackage('packages/contract', 'tsconfig.contract-', 'packages/contract/lib');
  if (fs.existsSync(path.join(root, 'sample-app/src/main.ts'))) run('@nestjs/cli/bin/nest.js', 'build');
  // A source that changed while we compiled makes this build stale, so the stamp carries the start time.
  fs.writeFileSync(stamp, '');
  fs.utimesSync(stamp, startedAt, startedAt);
}

/** Two test runs may find the build stale at the same moment; the second waits and then looks again. */
export async function ensureBuilt({ always = false } = {}) {
  const deadline = Date.now() + lockTimeoutMs;
  for (;;) {
    if (!always && !isStale()) return;
    try {
      fs.mkdirSync(lock);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      const since = fs.statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
      if (Date.now() - since > lockTimeoutMs) fs.rmSync(lock, { recursive: true, force: true });
      else if (Date.now() > deadline)
        throw new Error(`Another build seems to run. If none does, delete ${lock}.`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
  try {
    await build();
  } finally {
    fs.rmSync(lock, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    await ensureBuilt({ always: !process.argv.includes('--if-stale') });
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
