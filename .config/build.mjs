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

/**
 * Writes one package: for each entry point, in both formats, its JavaScript and its declarations, and beside them what
 * entry points share. So a class is the same through each of them, and what none of them exports has no typings.
 */
async function bundle(folder) {
  const at = (...parts) => path.join(root, folder, ...parts);
  const { exports } = JSON.parse(fs.readFileSync(at('package.json'), 'utf8'));
  const names = Object.values(exports).flatMap((entry) =>
    entry.import ? path.basename(entry.import.default, '.js') : [],
  );
  const written = { esm: [], cjs: ['package.json'] };
  for (const [extension, plugins] of [
    ['.js', []],
    ['.d.ts', [dts()]],
  ]) {
    const modules = await rollup({
      input: Object.fromEntries(names.map((name) => [name, at('dist/modules', `${name}${extension}`)])),
      external: (id) => !id.startsWith('.') && !path.isAbsolute(id),
      plugins,
      onwarn: refuse,
    });
    for (const [name, format] of [
      ['esm', 'es'],
      ['cjs', extension === '.js' ? 'cjs' : 'es'],
    ]) {
      const { output } = await modules.write({
        dir: at('dist', name),
        format,
        entryFileNames: `[name]${extension}`,
        chunkFileNames: `shared-[hash]${extension}`,
        hoistTransitiveImports: false,
        interop: 'auto',
        esModule: true,
        // As TypeScript writes it: a host that was compiled to CommonJS gets the peers that it requires itself.
        dynamicImportInCjs: false,
      });
      written[name].push(...output.map(({ fileName }) => fileName));
    }
    await modules.close();
  }
  fs.writeFileSync(at('dist/cjs/package.json'), '{ "type": "commonjs" }\n');
  for (const [name, files] of Object.entries(written)) {
    for (const file of fs.readdirSync(at('dist', name))) {
      if (!files.includes(file)) fs.rmSync(at('dist', name, file), { recursive: true });
    }
  }
}

/** Whatever is odd fails the build, but for two things that are meant. */
function refuse(warning) {
  // The helper that TypeScript writes for decorators asks for `this`.
  if (warning.code === 'THIS_IS_UNDEFINED') return;
  // A base class that no entry point exports is not for hosts to name.
  if (warning.message.includes('private shared type exports')) return;
  throw new Error(warning.message);
}

async function build() {
  const startedAt = new Date();
  fs.rmSync(stamp, { force: true });
  for (const [folder, config] of [
    ['.', 'package'],
    ['packages/contract', 'contract'],
  ]) {
    run('typescript/bin/tsc', '-p', `.config/tsconfig.${config}.json`);
    await bundle(folder);
  }
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
