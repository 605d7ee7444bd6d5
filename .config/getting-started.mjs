// Tries docs/guide/getting-started.md as a new user would: takes its commands, files and changes in their order, and runs them on an empty `nest new`.
//   node .config/getting-started.mjs 12          prints the wall time of each command and of all of them
// The package is packed from this checkout; everything else comes from the registry.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
export const PAGE = 'docs/guide/getting-started.md';

/**
 * The page as steps for one major version of Nest: commands (`sh`), whole files (a `ts` block that begins with `// src/…`) and changes of files (`diff`).
 * They end where the page goes on to what the imports do.
 */
export function stepsOf(page, major) {
  const tried = page.split('\n## What the imports do')[0];
  return [...tried.matchAll(/^```(sh|ts|diff)(.*)\n([^]*?)^```$/gm)].flatMap(([, kind, words, body]) => {
    const only = /nest-(\d+)/.exec(words)?.[1];
    if (only && only !== major) return [];
    if (kind === 'sh') return [{ kind, body }];
    const file = /^ ?\/\/ (src\/\S+)\n/.exec(body);
    return file ? [{ kind, file: file[1], body: body.slice(file[0].length) }] : [];
  });
}

/** The install commands of the page, one per line. */
export function installLines(page, major) {
  return stepsOf(page, major).flatMap(({ kind, body }) =>
    kind === 'sh' ? body.split('\n').filter((line) => line.startsWith('npm install')) : [],
  );
}

/** A change as the page shows it: lines to find in order, to remove (`-`) and to add (`+`). NestJS 11 imports without `.js`. */
export function applyDiff(text, diff, major) {
  const fits = (line) => (major === '11' ? line.replace(/(from '\..*)\.js'/, "$1'") : line);
  const lines = text.split('\n');
  let at = 0;
  for (const change of diff.split('\n').filter((line) => line.trim() !== '')) {
    const wanted = fits(change.slice(1));
    if (change[0] === '+') {
      const indent = wanted.startsWith(' ') ? '' : (/^ */.exec(lines[at - 1] ?? '')?.[0] ?? '');
      lines.splice(at++, 0, indent + wanted);
      continue;
    }
    const found = lines.findIndex((line, index) => index >= at && line.trim() === wanted.trim());
    if (found < 0) throw new Error(`The page changes a line that is not there: ${wanted.trim()}`);
    if (change[0] === '-') lines.splice(found, 1);
    at = change[0] === '-' ? found : found + 1;
  }
  return lines.join('\n');
}

/** Packs this checkout. @returns the tarball */
export function pack(directory) {
  execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', directory], { cwd: root, stdio: 'ignore' });
  const [tarball] = readdirSync(directory).filter((file) => file.endsWith('.tgz'));
  return path.join(directory, tarball);
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Runs a command of the page in a shell; what it leaves in the background goes on. @returns what it printed, and the directory it ended in */
function runShell(command, cwd, env) {
  return new Promise((resolve, reject) => {
    const output = [];
    const where = path.join(env.STATE, 'cwd');
    const child = spawn('bash', ['-e', '-c', `${command}\npwd > '${where}'`], { cwd, env, detached: true });
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    child.on('exit', (code) => {
      const printed = Buffer.concat(output).toString();
      if (code !== 0) reject(new Error(`${command}\n${printed}`));
      else resolve({ printed, cwd: readFileSync(where, 'utf8').trim(), group: child.pid });
    });
  });
}

/** @returns how long it took, in ms, with the time of each command */
export async function tryPage(major, report = () => undefined) {
  const box = mkdtempSync(path.join(tmpdir(), `getting-started-${major}-`));
  const groups = [];
  try {
    mkdirSync(path.join(box, 'pack'));
    const tarball = pack(path.join(box, 'pack'));
    const port = await freePort();
    const { NODE_OPTIONS: _ours, ...env } = { ...process.env, PORT: String(port), STATE: box, CI: 'true' };
    const startedAt = Date.now();
    let cwd = box;
    let printed = '';
    for (const { kind, file, body } of stepsOf(readFileSync(path.join(root, PAGE), 'utf8'), major)) {
      if (kind === 'sh') {
        const command = body
          .replace(/(npm install) nestjs-agent-runs\b/, `$1 ${tarball}`)
          .replaceAll(':3000', `:${port}`);
        const begin = Date.now();
        const ran = await runShell(command, cwd, env);
        groups.push(ran.group);
        ({ cwd, printed } = ran);
        report(
          `${((Date.now() - begin) / 1000).toFixed(0).padStart(4)} s  ${body.trim().replaceAll('\n', '\n        ')}`,
        );
      } else {
        const target = path.join(cwd, file);
        const text = kind === 'ts' ? body : applyDiff(readFileSync(target, 'utf8'), body, major);
        writeFileSync(target, text);
        report(`        ${kind === 'ts' ? 'write' : 'change'} ${file}`);
      }
    }
    const [run] = /\{"id":.*\}/.exec(printed) ?? [];
    if (!run || JSON.parse(run).status !== 'completed') throw new Error(`The run did not complete:\n${printed}`);
    return Date.now() - startedAt;
  } finally {
    for (const group of groups) {
      try {
        process.kill(-group, 'SIGKILL');
      } catch {
        // Nothing of it is left.
      }
    }
    rmSync(box, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const majors = process.argv.length > 2 ? process.argv.slice(2) : ['11', '12'];
  for (const major of majors) {
    console.log(`NestJS ${major}`);
    const took = await tryPage(major, console.log);
    console.log(`${(took / 1000).toFixed(0).padStart(4)} s  in all`);
  }
}
