// Jest's global set-up for the suites that need MariaDB and Postgres. For each: the server that TEST_MARIADB_URL or TEST_POSTGRES_URL names, else one on
// the usual port, else a private instance from installed binaries, on a port and in a directory of its own. Where none can be had, CI fails with what to do,
// and elsewhere the suites of that server are reported as skipped.
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

const READY_MS = 30_000;
const started = [];

/** @param usualPorts for a trial of the private instances */
export default async function setUp(_config, _project, usualPorts = { mariadb: 3306, postgres: 5432 }) {
  const missing = [];
  for (const server of [mariadb, postgres]) {
    const url = await urlOf(server, usualPorts[server.name]);
    if (url) process.env[server.variable] = url;
    else missing.push(server);
  }
  process.env.TEST_SERVERS_MISSING = missing.map(({ name }) => name).join(',');
  if (missing.length === 0) return;
  const fix = missing.map(
    ({ title, variable, packages }) =>
      `${title}: start one on its usual port, or name one in ${variable}, or install it (${packages}).`,
  );
  if (process.env.CI) throw new Error(`The tests need database servers that are not here.\n${fix.join('\n')}`);
  process.stderr.write(`Skipped suites for lack of a server. ${fix.join(' ')}\n`);
}

export async function stopPrivateServers() {
  for (const { child, directory } of started.splice(0)) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    rmSync(directory, { recursive: true, force: true });
  }
}

async function urlOf(server, usualPort) {
  const named = process.env[server.variable];
  if (named) return named;
  if (await answers(usualPort)) return server.url(usualPort);
  try {
    return await startPrivate(server);
  } catch (error) {
    process.stderr.write(`No private ${server.title}: ${error.message}\n`);
    return null;
  }
}

async function startPrivate(server) {
  const programs = server.programs();
  if (!programs) return null;
  const directory = mkdtempSync(join(tmpdir(), `agent-runs-${server.name}-`));
  // Servers refuse to run as root: they get the user that their package made.
  const identity = userInfo().uid === 0 ? { uid: idOf('-u', server.user), gid: idOf('-g', server.user) } : {};
  if (identity.uid !== undefined) chownSync(directory, identity.uid, identity.gid);
  const port = await freePort();
  execFileSync(...server.initialise(programs, join(directory, 'data')), {
    stdio: 'ignore',
    cwd: directory,
    ...identity,
  });
  const child = spawn(...server.serve(programs, directory, port), { stdio: 'ignore', cwd: directory, ...identity });
  started.push({ child, directory });
  for (const end = Date.now() + READY_MS; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    if (await answers(port)) return server.url(port);
    if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}`);
  }
  throw new Error(`it did not answer on port ${port} within ${READY_MS} ms`);
}

const mariadb = {
  name: 'mariadb',
  title: 'MariaDB',
  variable: 'TEST_MARIADB_URL',
  packages: 'mariadb-server',
  user: 'mysql',
  url: (port) => `mysql://root@127.0.0.1:${port}`,
  programs: () => all({ install: find('mariadb-install-db'), server: find('mariadbd') }),
  initialise: ({ install }, data) => [
    install,
    [`--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
  ],
  serve: ({ server }, directory, port) => [
    server,
    [
      '--no-defaults',
      `--datadir=${join(directory, 'data')}`,
      `--socket=${join(directory, 'socket')}`,
      `--pid-file=${join(directory, 'pid')}`,
      '--bind-address=127.0.0.1',
      `--port=${port}`,
    ],
  ],
};

const postgres = {
  name: 'postgres',
  title: 'PostgreSQL',
  variable: 'TEST_POSTGRES_URL',
  packages: 'postgresql',
  user: 'postgres',
  url: (port) => `postgres://postgres@127.0.0.1:${port}`,
  programs: () => all({ init: find('initdb'), server: find('postgres') }),
  initialise: ({ init }, data) => [init, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8']],
  serve: ({ server }, directory, port) => [
    server,
    ['-D', join(directory, 'data'), '-p', String(port), '-h', '127.0.0.1', '-k', directory],
  ],
};

/** In the path, or where Debian keeps what is not in it. */
function find(program) {
  const versions = existsSync('/usr/lib/postgresql')
    ? readdirSync('/usr/lib/postgresql').map((version) => `/usr/lib/postgresql/${version}/bin`)
    : [];
  return [...versions.reverse(), ...(process.env.PATH ?? '').split(':'), '/usr/sbin']
    .map((directory) => join(directory, program))
    .find((path) => existsSync(path));
}

function all(programs) {
  return Object.values(programs).every(Boolean) ? programs : null;
}

function idOf(flag, user) {
  return Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 1_000 });
    const done = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
    socket.once('timeout', () => done(false));
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
