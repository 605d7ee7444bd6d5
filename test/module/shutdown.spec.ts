/** CFG-6: what clients and the next process see of a process that ends. On both adapters. */
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { jest } from '@jest/globals';
import { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import { RunService } from '../../lib/engine/run-service.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { StoreUnavailableError } from '../../lib/errors/store.errors.js';
import { AgentRunsHttpModule } from '../../lib/http.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agentWith, hostModule, quiet } from '../support/nest-host.js';
import { FailingStore } from '../support/failing-store.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

const adapters = { express: () => new ExpressAdapter(), fastify: () => new FastifyAdapter() };
const apps: INestApplication[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

async function listening(adapter: keyof typeof adapters) {
  const answer = signal();
  const store = new FailingStore(new MemoryRunStore());
  const app = await NestFactory.create(
    hostModule({
      imports: [
        {
          module: class Store {},
          global: true,
          providers: [{ provide: RunStore, useValue: store }],
          exports: [RunStore],
        },
        AgentRunsHttpModule.register({ allowUnguarded: true, actorResolver: () => ({ id: 'ann' }) }),
      ],
      providers: [agentWith([])],
      runs: {
        ...quiet,
        models: {
          default: {
            name: 'slow',
            generate: async () => {
              await answer.promise;
              return { content: [{ type: 'text', text: 'ok' }], finishReason: 'stop', usage: {} };
            },
          },
        },
      },
    }),
    adapters[adapter]() as never,
    { logger: false, abortOnError: false },
  );
  apps.push(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/agents/runs`;
  const ask = (query: string): Promise<Response> =>
    fetch(`${url}${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agent: 'support', prompt: 'Go' }),
    });
  return { app, port, store, ask, answer, runs: app.get(RunService), worker: app.get(RunWorker) };
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve((socket.destroy(), false)));
    socket.once('error', () => resolve(true));
  });

describe.each(['express', 'fastify'] as const)('A process that ends, on %s', (adapter) => {
  it('CFG-6: answers those who wait with 202, the run and its place, and closes its port before it drains', async () => {
    const { app, port, ask, answer, runs, worker } = await listening(adapter);
    const asked = ask('?wait=60');
    await until(() => worker.status().activeRuns === 1, 'the run');
    const inProcess = runs.startAndWait({ agent: 'support', prompt: 'Go', runId: 'in-process' });
    await until(() => worker.status().activeRuns === 2, 'both runs');
    const closed = app.close();
    const response = await asked;
    const run = (await response.json()) as { id: string; status: string };
    expect([response.status, run.status]).toEqual([202, 'running']);
    expect(response.headers.get('location')).toBe(`/agents/runs/${run.id}`);
    expect(await inProcess).toMatchObject({ id: 'in-process', status: 'running' });
    expect(worker.status().state).toBe('draining');
    expect(await isFree(port)).toBe(true);
    answer.resolve();
    await closed;
    apps.length = 0;
  });

  it('CFG-6: a start that is being committed is answered as committed', async () => {
    const { app, store, ask } = await listening(adapter);
    const gate = store.hold('create', { after: true });
    const asked = ask('?wait=60');
    await gate.reached;
    const closed = app.close();
    await until(() => app.get(RunWorker).status().state === 'draining', 'the drain');
    gate.open();
    const response = await asked;
    expect(response.status).toBe(202);
    const { id } = (await response.json()) as { id: string };
    expect(response.headers.get('location')).toBe(`/agents/runs/${id}`);
    await closed;
    apps.length = 0;
  });

  it('SUB-1: a run that is there is answered with 202 where the store stops answering while it is waited for', async () => {
    const { store, ask, worker, answer } = await listening(adapter);
    const asked = ask('?wait=60');
    await until(() => worker.status().activeRuns === 1, 'the run');
    store.fail('snapshot', { times: Number.POSITIVE_INFINITY });
    const response = await asked;
    expect(response.status).toBe(202);
    expect(response.headers.get('location')).toMatch(/^\/agents\/runs\/./);
    store.heal();
    answer.resolve();
  });

  it('SUB-1: a run whose commit was not answered is answered with what was committed', async () => {
    const { store, ask, answer } = await listening(adapter);
    answer.resolve();
    store.fail('create', { lost: true });
    const response = await ask('');
    expect(response.status).toBe(202);
    const { id } = (await response.json()) as { id: string };
    expect((await store.inner.load(id))?.run.id).toBe(id);
    store.fail('create');
    expect((await ask('')).status).toBe(503);
  });

  it('a client that leaves is waited for no more', async () => {
    const { store, runs, port, worker, answer } = await listening(adapter);
    const waiting = jest.spyOn(runs, 'result');
    const body = JSON.stringify({ agent: 'support', prompt: 'Go' });
    const client = connect(port, '127.0.0.1').setNoDelay();
    client.write(
      `POST /agents/runs?wait=60 HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => worker.status().activeRuns === 1 && waiting.mock.calls.length === 1, 'the wait');
    client.destroy();
    await waiting.mock.results[0]?.value;
    const looks = store.count('snapshot');
    answer.resolve();
    await until(() => worker.status().activeRuns === 0, 'the end of the run');
    expect(store.count('snapshot')).toBe(looks);
  });
});

describe('RunService', () => {
  it('SUB-1: startAndWait gives the run as it was accepted where the store stops answering', async () => {
    const { store, runs, answer } = await listening('express');
    store.fail('snapshot', { times: Number.POSITIVE_INFINITY, error: () => new StoreUnavailableError('gone') });
    expect(await runs.startAndWait({ agent: 'support', prompt: 'Go' })).toMatchObject({ status: 'running' });
    store.heal();
    answer.resolve();
  });
});
