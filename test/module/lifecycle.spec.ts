import { type BeforeApplicationShutdown, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { jest } from '@jest/globals';
import { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import { RunService } from '../../lib/engine/run-service.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { AgentRunsLifecycle } from '../../lib/module/agent-runs-lifecycle.service.js';
import { NestEngineLog } from '../../lib/module/nest-engine-log.js';
import { watchShutdownHooks, WATCH_AFTER_MS } from '../../lib/module/process-life.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { ManualClock } from '../support/manual-clock.js';
import { agentWith, bootHost, hostModule, quiet } from '../support/nest-host.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

const told: string[] = [];
beforeEach(() => {
  told.length = 0;
});
afterEach(() => {
  jest.restoreAllMocks();
});

class TellingStore extends MemoryRunStore {
  override open(): Promise<void> {
    told.push('store open');
    return super.open();
  }
  override close(): Promise<void> {
    told.push('store close');
    return super.close();
  }
}

const storeModule = (useFactory: () => RunStore = () => new TellingStore()) => ({
  module: class StoreModule {},
  global: true,
  providers: [{ provide: RunStore, useFactory }],
  exports: [RunStore],
});

describe('Start and shutdown (CFG-6)', () => {
  it('CFG-6: the store opens before the worker claims, and closes after it has drained, while the host is still open', async () => {
    const drain = RunWorker.prototype.drain;
    jest.spyOn(RunWorker.prototype, 'drain').mockImplementation(async function (this: RunWorker) {
      told.push('drain');
      await drain.call(this);
    });
    const start = RunWorker.prototype.start;
    jest.spyOn(RunWorker.prototype, 'start').mockImplementation(async function (this: RunWorker) {
      told.push('worker start');
      await start.call(this);
    });
    @Injectable()
    class HostDatabase implements OnApplicationShutdown {
      onApplicationShutdown(): void {
        told.push('host database closes');
      }
    }
    const app = await bootHost({ imports: [storeModule()], providers: [HostDatabase, agentWith([])] });
    await app.close();
    expect(told).toEqual(['store open', 'worker start', 'drain', 'store close', 'host database closes']);
  });

  it('B013: a call in flight is finished and committed before the host closes its database', async () => {
    const entered = signal();
    const finish = signal();
    @Injectable()
    class Tools {
      @AgentTool({ name: 'work', description: 'Works.', input: {} })
      async work() {
        entered.resolve();
        await finish.promise;
        told.push('tool done');
        return 'done';
      }
    }
    @Injectable()
    class HostDatabase implements OnApplicationShutdown {
      onApplicationShutdown(): void {
        told.push('host database closes');
      }
    }
    const store = new TellingStore();
    const app = await bootHost({
      imports: [storeModule(() => store)],
      providers: [Tools, HostDatabase, agentWith(['work'])],
      runs: { ...quiet, models: { default: scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'ok' }]) } },
    });
    const { id } = await app.get(RunService).start({ agent: 'support', prompt: 'Go' });
    await entered.promise;
    const worker = app.get(RunWorker);
    const closed = app.close();
    await until(() => worker.status().state === 'draining', 'draining');
    finish.resolve();
    await closed;
    expect(told).toEqual(['store open', 'tool done', 'store close', 'host database closes']);
    const journal = await store.readJournal(id, 0, 100);
    expect(journal?.entries.map(({ type }) => type)).toContain('tool.completed');
    expect(journal?.run.status).toBe('pending');
  });

  it('CFG-6: hooks are idempotent', async () => {
    const app = await bootHost({ imports: [storeModule()] });
    const lifecycle = app.get(AgentRunsLifecycle, { strict: false });
    await Promise.all([lifecycle.onModuleInit(), lifecycle.onApplicationBootstrap()]);
    await Promise.all([lifecycle.beforeApplicationShutdown(), lifecycle.beforeApplicationShutdown()]);
    await app.close();
    expect(told).toEqual(['store open', 'store close']);
  });

  it('CFG-6: a shutdown hook never rejects, and the rest of the shutdown goes on', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    class Stubborn extends TellingStore {
      override close(): Promise<void> {
        return Promise.reject(new RangeError('will not close'));
      }
    }
    @Injectable()
    class Other implements BeforeApplicationShutdown {
      beforeApplicationShutdown(): void {
        told.push('other');
      }
    }
    const app = await bootHost({ imports: [storeModule(() => new Stubborn())], providers: [Other] });
    const lifecycle = app.get(AgentRunsLifecycle, { strict: false });
    await expect(lifecycle.beforeApplicationShutdown()).resolves.toBeUndefined();
    await app.close();
    expect(told).toContain('other');
    expect(error.mock.calls.map(([line]) => line)).toEqual(['Shutdown: closing the store failed (RangeError)']);
  });

  it('CFG-6: a shutdown that comes while the store opens starts nothing', async () => {
    const opening = signal();
    class Slow extends TellingStore {
      override async open(): Promise<void> {
        await super.open();
        await opening.promise;
      }
    }
    const start = jest.spyOn(RunWorker.prototype, 'start');
    const app = await NestFactory.create(hostModule({ imports: [storeModule(() => new Slow())] }), {
      logger: false,
      abortOnError: false,
    });
    const lifecycle = app.get(AgentRunsLifecycle, { strict: false });
    await lifecycle.onModuleInit();
    const started = lifecycle.onApplicationBootstrap();
    const stopped = lifecycle.beforeApplicationShutdown();
    opening.resolve();
    await Promise.all([started, stopped]);
    expect(start).not.toHaveBeenCalled();
    expect(told).toEqual(['store open', 'store close']);
    await app.close();
  });

  it('a store that does not open fails the boot, and the application can still be closed', async () => {
    class Broken extends TellingStore {
      override open(): Promise<void> {
        return Promise.reject(new Error('no such database'));
      }
    }
    const app = await NestFactory.create(hostModule({ imports: [storeModule(() => new Broken())] }), {
      logger: false,
      abortOnError: false,
    });
    await expect(app.init()).rejects.toThrow('no such database');
    await app.close();
    expect(told).toEqual(['store close']);
  });

  it('OPS-3: what the store takes at most is the limit of prompts, results and replies, where it is less than the option', async () => {
    class SmallStore extends MemoryRunStore {
      override readonly traits = { ...new MemoryRunStore().traits, maxCommitBytes: 2_000 };
    }
    const app = await bootHost({
      imports: [storeModule(() => new SmallStore())],
      providers: [agentWith([])],
      runs: { ...quiet, maxPayloadBytes: 2_000, allowMemoryStore: true },
    });
    const runs = app.get(RunService);
    await runs.start({ agent: 'support', prompt: 'x'.repeat(500) });
    await expect(runs.start({ agent: 'support', prompt: 'x'.repeat(1_500) })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    });
    await app.close();
  });

  it('CFG-7: works the same in an HTTP application', async () => {
    const app = await NestFactory.create(
      hostModule({
        imports: [storeModule()],
        providers: [agentWith([])],
        runs: { ...quiet, models: { default: scriptedModel([{ text: 'Hi.' }]) } },
      }),
      { logger: false, abortOnError: false },
    );
    await app.listen(0, '127.0.0.1');
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'Hello' });
    expect(run.output).toBe('Hi.');
    await app.close();
    expect(told).toEqual(['store open', 'store close']);
  });
});

describe('Shutdown hooks that are off', () => {
  const warnings: string[] = [];
  const watch = async () => {
    warnings.length = 0;
    const clock = new ManualClock();
    watchShutdownHooks(clock, (message) => warnings.push(message));
    await clock.advance(WATCH_AFTER_MS);
    return warnings;
  };

  it('B016: are warned about once, shortly after boot', async () => {
    expect(process.listenerCount('SIGTERM')).toBe(0);
    expect(await watch()).toEqual([expect.stringMatching(/Call app\.enableShutdownHooks\(\)/)]);
  });

  it('B016: are not warned about when they are on, also if only after boot', async () => {
    const app = await bootHost({});
    const clock = new ManualClock();
    warnings.length = 0;
    watchShutdownHooks(clock, (message) => warnings.push(message));
    app.enableShutdownHooks();
    await clock.advance(WATCH_AFTER_MS);
    expect(warnings).toEqual([]);
    await app.close();
    expect(process.listenerCount('SIGTERM')).toBe(0);
  });

  it('B016: nor is anything said after a shutdown', async () => {
    const clock = new ManualClock();
    const cancel = watchShutdownHooks(clock, (message) => warnings.push(message));
    warnings.length = 0;
    cancel();
    await clock.advance(WATCH_AFTER_MS);
    expect([warnings, clock.pending]).toEqual([[], 0]);
  });
});

describe("The engine's words in the host's log", () => {
  it('EVT-4: are one line of ids and codes, with chosen keys redacted', () => {
    const lines: unknown[] = [];
    for (const level of ['debug', 'log', 'warn', 'error'] as const) {
      jest
        .spyOn(Logger.prototype, level)
        .mockImplementation((line: unknown) => void lines.push(`${level}: ${String(line)}`));
    }
    const log = new NestEngineLog(['owner']);
    log.debug('polled');
    log.info('claimed a run', { runId: 'r-1', attempt: 2, owner: 'w-1', missing: undefined });
    log.warn('odd', { name: 'a\nb\u2028c', list: [1] });
    log.error('gone', { code: 'STORE_UNAVAILABLE' });
    expect(lines).toEqual([
      'debug: polled',
      'log: claimed a run (runId=r-1 attempt=2 owner=[redacted])',
      'warn: odd (name=a b c list=[1])',
      'error: gone (code=STORE_UNAVAILABLE)',
    ]);
  });
});
