// A developer saves a file while a model is asked: the CLI's next process needs the port of one that still drains.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { until } from '../../support/until.js';

const SAVES = Number(process.env['TEST_WATCH_SAVES'] ?? 2);
// The first compilation takes most of it.
const PATIENCE = { withinMs: 60_000, everyMs: 50 };
const MODEL_CALL_MS = 1_500;

jest.setTimeout(PATIENCE.withinMs + SAVES * 30_000);

/** The sample in a directory of its own, under `nest start --watch`. */
class WatchedSample {
  log = '';
  private readonly root = mkdtempSync(join(tmpdir(), 'watched-desk-'));
  private readonly app = join(this.root, 'app');
  private cli: ChildProcess | undefined;
  private url = '';

  async start(): Promise<void> {
    mkdirSync(join(this.app, 'node_modules'), { recursive: true });
    symlinkSync(resolve('node_modules'), join(this.root, 'node_modules'));
    symlinkSync(resolve('.'), join(this.app, 'node_modules/nestjs-agent-runs'));
    writeFileSync(join(this.app, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    for (const path of ['nest-cli.json', 'sample-app/src', 'sample-app/tsconfig.json'])
      cpSync(path, join(this.app, path), { recursive: true });
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    this.cli = spawn(process.execPath, [resolve('node_modules/@nestjs/cli/bin/nest.js'), 'start', '--watch'], {
      cwd: this.app,
      // The CLI, its compiler and its children end together.
      detached: true,
      env: {
        PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
        NODE_ENV: 'test',
        NO_COLOR: '1',
        PORT: String(port),
        DEMO_MODEL_DELAY_MS: String(MODEL_CALL_MS),
        AGENT_RUNS_POLL_EVERY: '100ms',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.cli.stdout, this.cli.stderr])
      stream?.on('data', (data: Buffer) => (this.log += data.toString()));
    await this.listening(1);
  }

  /** How often a process of it has begun to listen. */
  get starts(): number {
    return this.log.split('The support desk listens on').length - 1;
  }

  listening(starts: number): Promise<void> {
    return this.until(() => this.starts >= starts, `start number ${starts}`);
  }

  save(): void {
    appendFileSync(join(this.app, 'sample-app/src/main.ts'), '\n// saved\n');
  }

  async http<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(this.url + path, {
      method: body ? 'POST' : 'GET',
      headers: { 'x-user': 'alice', 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as T;
  }

  /** Asks again while no process listens. */
  async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const patient = async () => {
      if (this.cli?.exitCode !== null) throw new Error('the CLI has ended');
      if (this.log.includes(' FATAL ')) throw new Error('the sample could not start');
      return condition();
    };
    await until(async () => patient().catch(refused), what, PATIENCE).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.log}`);
    });
  }

  async stop(): Promise<void> {
    const { cli } = this;
    if (cli?.pid !== undefined) {
      const ended = cli.exitCode === null && cli.signalCode === null ? once(cli, 'close') : null;
      try {
        process.kill(-cli.pid, 'SIGKILL');
      } catch {
        // Nothing of it is left.
      }
      await ended;
    }
    rmSync(this.root, { recursive: true, force: true, maxRetries: 3 });
  }
}

function refused(error: unknown): false {
  if (error instanceof TypeError && error.message === 'fetch failed') return false;
  throw error;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

interface Operation {
  kind: string;
  status: string;
}

describe('nest start --watch', () => {
  let sample: WatchedSample;
  beforeEach(() => {
    sample = new WatchedSample();
  });
  afterEach(() => sample.stop());

  const statusOf = async (id: string) => (await sample.http<{ status: string }>(`/agents/runs/${id}`)).status;
  const isAsking = async (id: string) => {
    const { operations } = await sample.http<{ operations: Operation[] }>(`/agents/runs/${id}/snapshot`);
    const last = operations.at(-1);
    return last?.kind === 'model' && last.status !== 'completed';
  };

  it(`${SAVES} saves during model calls: the port is free each time, runs finish, and no effect happens twice`, async () => {
    await sample.start();
    const runs: string[] = [];
    for (let save = 1; save <= SAVES; save++) {
      // Two saves meet the same run, if it is not faster.
      if (save % 2 === 1 || (await statusOf(runs.at(-1) as string)) === 'completed') {
        const prompt = 'Please refund 25 for order o-17';
        runs.push((await sample.http<{ id: string }>('/agents/runs', { agent: 'support', prompt })).id);
      }
      await sample.until(() => isAsking(runs.at(-1) as string), 'a model call');
      sample.save();
      await sample.listening(save + 1);
    }
    for (const id of runs) await sample.until(async () => (await statusOf(id)) === 'completed', `the end of run ${id}`);
    expect(sample.log).not.toContain('EADDRINUSE');
    const refunds = await sample.http<{ operationId: string }[]>('/ledger');
    expect(refunds.map(({ operationId }) => operationId.split('/')[0]).sort()).toEqual([...runs].sort());
    expect(sample.starts).toBe(SAVES + 1);
  });
});
