import { Inject, Injectable, Module, type OnApplicationBootstrap, type OnModuleInit, type Type } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import { RunService } from '../../lib/engine/run-service.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { AgentRunsModule } from '../../lib/module/agent-runs.module.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agentWith, bootHost, hostModule, quiet } from '../support/nest-host.js';
import { signal } from '../support/signal.js';
import { rest } from '../support/manual-clock.js';
import { until } from '../support/until.js';

const start = { agent: 'support', prompt: 'Go' };
const told: string[] = [];
beforeEach(() => {
  told.length = 0;
});

const storeModule = (store: RunStore) => ({
  module: class StoreModule {},
  global: true,
  providers: [{ provide: RunStore, useValue: store }],
  exports: [RunStore],
});

/** A store that holds a run which anybody may claim. */
async function storeWithARun(): Promise<MemoryRunStore> {
  const store = new MemoryRunStore();
  const before = await bootHost({
    imports: [storeModule(store)],
    providers: [Tools, agentWith([Tools])],
    runs: runs(false),
  });
  await before.get(RunService).start({ ...start, runId: 'waiting' });
  await before.close();
  return store;
}

const runs = (worker: boolean) => ({
  ...quiet,
  worker,
  models: { default: scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'ok' }], { place: 'transcript' }) },
});

let opened = signal();
/** Its client is connected in a hook of its own, which takes its time. */
@Injectable()
class Tools implements OnApplicationBootstrap {
  async onApplicationBootstrap(): Promise<void> {
    told.push('hook begins');
    await opened.promise;
    told.push('hook ends');
  }

  @AgentTool({ name: 'work', description: 'Works.', input: {} })
  work() {
    told.push('tool');
    return 'done';
  }
}

describe('Runs and the start of the application', () => {
  const boots: Record<
    string,
    (module: ReturnType<typeof hostModule>) => Promise<{ close(): Promise<void>; get: <T>(token: Type<T>) => T }>
  > = {
    'an application context': (module) =>
      NestFactory.createApplicationContext(module, { logger: false, abortOnError: false }),
    'an HTTP application': async (module) =>
      (await NestFactory.create(module, { logger: false, abortOnError: false })).init(),
    'a testing module': async (module) => (await Test.createTestingModule({ imports: [module] }).compile()).init(),
  };

  it.each(Object.keys(boots))(
    'CFG-6: nothing is claimed before all bootstrap hooks have ended, in %s (R222)',
    async (kind) => {
      opened = signal();
      opened.resolve();
      const store = await storeWithARun();
      told.length = 0;
      opened = signal();
      // The module of the hook is called after the one of the runs, and its own class after its providers.
      @Module({ providers: [Tools, agentWith([Tools])] })
      class DeskModule implements OnApplicationBootstrap {
        async onApplicationBootstrap(): Promise<void> {
          await rest();
          told.push('desk is open');
        }
      }
      const module = hostModule({ imports: [storeModule(store), DeskModule], runs: runs(true) });
      const rootHook = (module.module as { prototype: object }).prototype as OnApplicationBootstrap;
      rootHook.onApplicationBootstrap = async () => {
        await rest();
        told.push('root is open');
      };
      const booting = boots[kind]?.(module);
      await until(() => told.includes('hook begins'), 'the hook');
      await rest();
      expect((await store.load('waiting'))?.run.status).toBe('pending');
      opened.resolve();
      const app = await booting;
      expect(app?.get(RunWorker).status().state).toBe('ready');
      const run = await app?.get(RunService).result('waiting');
      expect(run).toMatchObject({ status: 'completed', output: 'ok' });
      expect(told).toEqual(['hook begins', 'hook ends', 'desk is open', 'root is open', 'tool']);
      await app?.close();
    },
  );

  it('CFG-6: a boot that fails in a later hook of the host has claimed nothing', async () => {
    opened = signal();
    opened.resolve();
    const store = await storeWithARun();
    @Injectable()
    class Broken implements OnApplicationBootstrap {
      onApplicationBootstrap(): void {
        throw new Error('no such queue');
      }
    }
    const app = await NestFactory.create(
      hostModule({ imports: [storeModule(store)], providers: [Tools, Broken, agentWith([Tools])], runs: runs(true) }),
      { logger: false, abortOnError: false },
    );
    await expect(app.init()).rejects.toThrow('no such queue');
    await rest();
    expect((await store.load('waiting'))?.run.status).toBe('pending');
    expect(app.get(RunWorker).status().state).toBe('off');
    await app.close();
  });

  it('CFG-6: a run that a hook of the host starts is kept, and begins when the application is up', async () => {
    opened = signal();
    opened.resolve();
    let isOpen = false;
    class Opening extends MemoryRunStore {
      override async open(): Promise<void> {
        isOpen = true;
      }
      override create(...given: Parameters<MemoryRunStore['create']>): ReturnType<MemoryRunStore['create']> {
        if (!isOpen) throw new Error('the store is not open');
        return super.create(...given);
      }
    }
    @Injectable()
    class Warmup implements OnModuleInit {
      constructor(@Inject(RunService) private readonly service: RunService) {}
      async onModuleInit(): Promise<void> {
        const { status } = await this.service.start({ ...start, runId: 'warm-up' });
        told.push(status);
      }
    }
    const app = await bootHost({
      imports: [storeModule(new Opening())],
      providers: [Tools, Warmup, agentWith([Tools])],
      runs: runs(true),
    });
    expect(await app.get(RunService).result('warm-up')).toMatchObject({ status: 'completed' });
    expect(told).toEqual(['pending', 'hook begins', 'hook ends', 'tool']);
    await app.close();
  });

  it('CFG-6: a run that is started before the agents are found is refused with what to do', async () => {
    const refusals: string[] = [];
    @Injectable()
    class Eager {
      constructor(@Inject(RunService) service: RunService) {
        service.start(start).catch((error: Error) => refusals.push(error.message));
      }
    }
    const app = await bootHost({ providers: [Eager, agentWith([])] });
    expect(refusals).toEqual([expect.stringMatching(/not found yet\. Start runs in onModuleInit/)]);
    await app.close();
  });
});

describe('Modules that are loaded lazily', () => {
  @Injectable()
  class LateTools {
    @AgentTool({ name: 'late', description: 'Late.', input: {} })
    late() {
      return 'late';
    }
  }
  const lateAgent = (tools: unknown[]) => agentWith(tools, { name: 'late' });
  const lazily = (providers: unknown[]) => {
    @Module({ providers: providers as never[] })
    class LateModule {}
    return LateModule;
  };

  it('CFG-6: their agents and tools count once load has resolved', async () => {
    const models = { default: scriptedModel([{ calls: [{ name: 'late' }] }, { text: 'ok' }], { place: 'transcript' }) };
    const app = await bootHost({ providers: [agentWith([])], runs: { ...quiet, models } });
    const service = app.get(RunService);
    await expect(service.start({ agent: 'late', prompt: 'Go' })).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' });
    const late = lazily([LateTools, lateAgent([LateTools])]);
    const loader = app.get(LazyModuleLoader);
    await loader.load(() => late);
    await loader.load(() => late);
    expect(await service.startAndWait({ agent: 'late', prompt: 'Go' })).toMatchObject({
      status: 'completed',
      output: 'ok',
    });
    expect(
      service
        .definitions()
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['late', 'support']);
    await app.close();
  });

  it('CFG-1: what is wrong with them fails the load, and what was there goes on', async () => {
    const models = { default: scriptedModel([{ text: 'ok' }]) };
    const app = await bootHost({ providers: [agentWith([])], runs: { ...quiet, models } });
    const loading = app.get(LazyModuleLoader).load(() => lazily([lateAgent(['nowhere'])]));
    await expect(loading).rejects.toMatchObject({
      code: 'INVALID_CONFIGURATION',
      message: expect.stringContaining('nowhere'),
    });
    expect(await app.get(RunService).startAndWait(start)).toMatchObject({ output: 'ok' });
    await app.close();
  });

  it('CFG-7: are none of its business where an application has no agents of its own', async () => {
    @Module({ imports: [AgentRunsModule.forRoot(quiet)] })
    class Host {}
    const app = await NestFactory.createApplicationContext(Host, { logger: false, abortOnError: false });
    await expect(app.get(LazyModuleLoader).load(() => lazily([]))).resolves.toBeDefined();
    await app.close();
  });
});
