// A MariaDB or Postgres of our own, from installed binaries, in a directory and on a port of its own. It keeps both over a restart.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

const READY_MS = 30_000;

const mariadb = {
  name: 'mariadb',
  title: 'MariaDB',
  packages: 'mariadb-server',
  user: 'mysql',
  /** Ends it in good order. */
  stopSignal: 'SIGTERM',
  url: (port) => `mysql://root@127.0.0.1:${port}`,
  programs: () => all({ install: find('mariadb-install-db'), server: find('mariadbd') }),
  initialise: ({ install }, data) => [
    install,
    ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
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
  packages: 'postgresql',
  user: 'postgres',
  /** Does not wait for clients to leave. */
  stopSignal: 'SIGINT',
  url: (port) => `postgres://postgres@127.0.0.1:${port}`,
  programs: () => all({ init: find('initdb'), server: find('postgres') }),
  initialise: ({ init }, data) => [init, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync']],
  serve: ({ server }, directory, port) => [
    server,
    ['-D', join(directory, 'data'), '-p', String(port), '-h', '127.0.0.1', '-k', directory],
  ],
};

export const SERVER_KINDS = { mariadb, postgres };

export class PrivateServer {
  #kind;
  #programs;
  #directory;
  #identity;
  #port;
  #arguments = [];
  #environment = {};
  #child = null;

  constructor(kind, programs, directory, identity, port) {
    this.#kind = kind;
    this.#programs = programs;
    this.#directory = directory;
    this.#identity = identity;
    this.#port = port;
  }

  /** Whether its binaries are installed here. */
  static isInstalled(name) {
    return SERVER_KINDS[name].programs() !== null;
  }

  /** Makes its data directory; it does not run yet. */
  static async create(name) {
    const kind = SERVER_KINDS[name];
    const programs = kind.programs();
    if (!programs) throw new Error(`${kind.title} is not installed here (${kind.packages}).`);
    const directory = mkdtempSync(join(tmpdir(), `agent-runs-${name}-`));
    // Servers refuse to run as root: they get the user that their package made.
    const identity = userInfo().uid === 0 ? { uid: idOf('-u', kind.user), gid: idOf('-g', kind.user) } : {};
    if (identity.uid !== undefined) chownSync(directory, identity.uid, identity.gid);
    try {
      execFileSync(...kind.initialise(programs, join(directory, 'data')), {
        stdio: 'ignore',
        cwd: directory,
        ...identity,
      });
      return new PrivateServer(kind, programs, directory, identity, await freePort());
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  get port() {
    return this.#port;
  }

  get url() {
    return this.#kind.url(this.#port);
  }

  /**
   * Resolves when it answers on its port.
   * @param settings further arguments of the program and variables of its environment; kept for later starts
   */
  async start({ arguments: given, environment } = {}) {
    if (given) this.#arguments = given;
    if (environment) this.#environment = environment;
    const { title } = this.#kind;
    for (const end = Date.now() + READY_MS; ; await pause()) {
      this.#child ??= this.#spawn();
      if (!isOver(this.#child) && (await answers(this.#port))) return;
      if (Date.now() > end) {
        const { exitCode } = this.#child;
        await this.kill();
        throw new Error(
          `${title} did not answer on port ${this.#port} within ${READY_MS} ms` +
            (exitCode === null ? '.' : `: it ended with code ${exitCode}.`),
        );
      }
      // After a kill Postgres refuses to start until what is left of its predecessor is gone.
      if (isOver(this.#child)) this.#child = null;
    }
  }

  /** In good order: clients are told. */
  async stop() {
    await this.#end(this.#kind.stopSignal);
  }

  /** SIGKILL, to all of its processes. */
  async kill() {
    await this.#end('SIGKILL');
  }

  async restart(settings) {
    await this.stop();
    await this.start(settings);
  }

  /** Ends it, and removes what it had. */
  async dispose() {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #spawn() {
    const [program, own] = this.#kind.serve(this.#programs, this.#directory, this.#port);
    return spawn(program, [...own, ...this.#arguments], {
      stdio: 'ignore',
      cwd: this.#directory,
      env: { ...process.env, ...this.#environment },
      ...this.#identity,
    });
  }

  async #end(signal) {
    const child = this.#child;
    this.#child = null;
    if (!child || isOver(child)) return;
    // A process of Postgres that outlives its parent would finish what it was doing: that is no crash.
    const family = signal === 'SIGKILL' ? childrenOf(child.pid) : [];
    const ended = once(child, 'exit');
    child.kill(signal);
    for (const pid of family) endQuietly(pid);
    await ended;
  }
}

const pause = () => new Promise((next) => setTimeout(next, 50));

function isOver(child) {
  return child.exitCode !== null || child.signalCode !== null;
}

function childrenOf(pid) {
  try {
    return execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .map(Number)
      .filter((child) => child > 0);
  } catch {
    return [];
  }
}

function endQuietly(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

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

/** Whether something listens there. */
export function answers(port) {
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
