/** The built sample as a process of its own, in a directory of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const ENTRY = resolve('sample-app/dist/main.js');

export class SampleDirectory {
  readonly path = mkdtempSync(join(tmpdir(), 'support-desk-'));
  private readonly processes: SampleProcess[] = [];

  async start(environment: Record<string, string> = {}): Promise<SampleProcess> {
    const sample = new SampleProcess(this.path, environment);
    this.processes.push(sample);
    await sample.healthy();
    return sample;
  }

  /** Runs it to its end, for a start that fails. */
  async run(environment: Record<string, string>): Promise<{ code: number | null; log: string }> {
    const sample = new SampleProcess(this.path, environment);
    this.processes.push(sample);
    return { code: await sample.ended, log: sample.log };
  }

  async remove(): Promise<void> {
    for (const sample of this.processes) await sample.kill('SIGKILL');
    rmSync(this.path, { recursive: true, force: true });
  }
}

export class SampleProcess {
  log = '';
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;
  private url = '';

  constructor(directory: string, environment: Record<string, string>) {
    const { PATH = '' } = process.env;
    this.child = spawn(process.execPath, [ENTRY], {
      cwd: directory,
      env: { PATH, NODE_ENV: 'test', NO_COLOR: '1', PORT: '0', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.on('data', (data: Buffer) => (this.log += data.toString()));
    this.child.stderr?.on('data', (data: Buffer) => (this.log += data.toString()));
    this.ended = once(this.child, 'close').then(([code]) => code as number | null);
  }

  async healthy(): Promise<void> {
    for (let i = 0; i < 600; i++) {
      if (this.child.exitCode !== null) throw new Error(`the sample ended\n${this.log}`);
      const port = /listens on \S+:(\d+)/.exec(this.log)?.[1];
      if (port) {
        this.url = `http://127.0.0.1:${port}`;
        if ((await this.http('GET', '/health').catch(() => null))?.status === 200) return;
      }
      await delay(50);
    }
    throw new Error(`the sample is not healthy\n${this.log}`);
  }

  async http(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const response = await fetch(this.url + path, {
      method,
      headers: { 'x-user': 'alice', ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : undefined };
  }

  /** Polls a run until it has the status. */
  async until(runId: string, status: string): Promise<any> {
    let last: any;
    for (let i = 0; i < 400; i++) {
      last = (await this.http('GET', `/agents/runs/${runId}`)).body;
      if (last.status === status) return last;
      await delay(50);
    }
    throw new Error(`the run is not ${status}: ${JSON.stringify(last)}\n${this.log}`);
  }

  async kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    return this.ended;
  }
}
