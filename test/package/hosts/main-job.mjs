// The main job of the package in a host application: a run outlives SIGKILL and SIGTERM, its refund is made once, and the process ends with nothing open.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const SOURCE = fileURLToPath(new URL('host-app.ts.txt', import.meta.url));
const BOOT_MS = 60_000;
const END_MS = 10_000;

/**
 * The host application for one combination, as TypeScript.
 * @param host `{ adapter: 'express' | 'fastify', database: 'sqlite' | 'mariadb' | 'postgres', schedule: boolean }`
 */
export function hostSource({ adapter, database, schedule = true }) {
  const type = { sqlite: 'better-sqlite3', mariadb: 'mysql', postgres: 'postgres' }[database];
  const location = database === 'sqlite' ? 'database' : 'url';
  const keep = { fastify: adapter === 'fastify', express: adapter !== 'fastify', schedule };
  return readFileSync(SOURCE, 'utf8')
    .replaceAll(/^(.*) \/\/ only: (\w+)\n/gm, (_, line, only) => (keep[only] ? `${line}\n` : ''))
    .replace('__TYPE__', type)
    .replace('__LOCATION__', location);
}

/** The same as JavaScript, without a look at its types. @param format `cjs` or `esm` */
export function transpiledHost(host, format) {
  return ts.transpileModule(hostSource(host), {
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: format === 'cjs' ? ts.ModuleKind.CommonJS : ts.ModuleKind.ESNext,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      esModuleInterop: true,
    },
  }).outputText;
}

class HostProcess {
  output = '';

  static async start({ main, node, env }) {
    const host = new HostProcess();
    const { NODE_OPTIONS: _ours, ...inherited } = process.env;
    host.child = fork(main, {
      cwd: path.dirname(main),
      env: { ...inherited, ...env },
      execPath: node ?? process.execPath,
      execArgv: [],
      silent: true,
    });
    host.child.stdout.on('data', (chunk) => (host.output += chunk));
    host.child.stderr.on('data', (chunk) => (host.output += chunk));
    host.ended = once(host.child, 'exit');
    const ready = once(host.child, 'message').then(([message]) => message);
    const failed = host.ended.then(([code]) =>
      Promise.reject(new Error(`The host ended with ${code}:\n${host.output}`)),
    );
    const late = delay(BOOT_MS, undefined, { ref: false }).then(() =>
      Promise.reject(new Error(`No boot:\n${host.output}`)),
    );
    failed.catch(() => undefined);
    late.catch(() => undefined);
    ({ url: host.url } = await Promise.race([ready, failed, late]));
    return host;
  }

  async request(method, target, body) {
    const response = await fetch(`${this.url}/agents/runs${target}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${target}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  }

  async until(id, status) {
    for (const end = Date.now() + BOOT_MS; ; await delay(50)) {
      const run = await this.request('GET', `/${id}`);
      if (run.status === status) return run;
      if (Date.now() > end) throw new Error(`Run ${id} is ${run.status}, not ${status}:\n${this.output}`);
    }
  }

  /** @returns exit code or signal; it must end in time by itself */
  async end(what) {
    const late = delay(END_MS, 'late', { ref: false });
    const ended = await Promise.race([this.ended, late]);
    if (ended !== 'late') return ended[0] ?? ended[1];
    this.child.kill('SIGKILL');
    throw new Error(`${what}: the host still runs after ${END_MS} ms:\n${this.output}`);
  }

  dispose() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
  }
}

/**
 * @param host `{ main, node?, env }`: the compiled application, the Node that runs it, and `DATABASE`
 * @returns what there was to see, for the caller to judge
 */
export async function mainJob(host) {
  const ledger = path.join(path.dirname(host.main), `ledger-${process.pid}-${Date.now()}`);
  const started = [];
  const start = async () => {
    const running = await HostProcess.start({ ...host, env: { ...host.env, LEDGER: ledger } });
    started.push(running);
    return running;
  };
  const refunds = (id) =>
    existsSync(ledger)
      ? readFileSync(ledger, 'utf8')
          .split('\n')
          .filter((line) => line.startsWith(`${id}/`))
      : [];
  const refunded = async (id) => {
    for (const end = Date.now() + BOOT_MS; refunds(id).length === 0; await delay(10))
      if (Date.now() > end) throw new Error(`No refund of ${id}`);
  };
  const start1 = { agent: 'support', prompt: 'Refund o-17.', runId: `kill-${Date.now()}` };
  const start2 = { ...start1, runId: start1.runId.replace('kill', 'term') };
  try {
    const first = await start();
    await first.request('POST', '', start1);
    await refunded(start1.runId);
    first.child.kill('SIGKILL');
    await first.ended;

    const second = await start();
    const killed = await second.until(start1.runId, 'completed');
    await second.request('POST', '', start2);
    await refunded(start2.runId);
    second.child.kill('SIGTERM');
    const onTerm = await second.end('SIGTERM');

    const third = await start();
    const handedOver = await third.until(start2.runId, 'completed');
    third.child.send('close');
    const onClose = await third.end('app.close()');
    return {
      afterKill: {
        attempt: killed.attempt,
        recoveries: killed.recoveries,
        refunds: new Set(refunds(start1.runId)).size,
      },
      afterTerm: { recoveries: handedOver.recoveries, refunds: refunds(start2.runId).length, exit: onTerm },
      close: onClose,
    };
  } finally {
    for (const running of started) running.dispose();
  }
}

/** What {@link mainJob} has to return. */
export const DONE = {
  afterKill: { attempt: 2, recoveries: 1, refunds: 1 },
  afterTerm: { recoveries: 0, refunds: 1, exit: 'SIGTERM' },
  close: 0,
};
