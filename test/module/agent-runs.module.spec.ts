import { channel } from 'node:diagnostics_channel';
import {
  type DynamicModule,
  Inject,
  Injectable,
  type INestApplicationContext,
  Logger,
  Module,
  type OnModuleInit,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { jest } from '@jest/globals';
import type {
  InputGuardrail,
  InputVerdict,
  LifecycleEvent,
  RunObserver,
  ScreenedInput,
} from '../../lib/contracts/ports/host.port.js';
import { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import { AGENT_RUNS_STORE, InjectRunStore } from '../../lib/decorators/inject-run-store.decorator.js';
import { ObserveRuns, ScreenInput } from '../../lib/decorators/provider.decorators.js';
import { RunMetrics, RunService } from '../../lib/engine/run-service.js';
import { RunRecovery } from '../../lib/engine/run-recovery.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { AgentRunsModule } from '../../lib/module/agent-runs.module.js';
import { AGENT_RUNS_SETTINGS } from '../../lib/module/agent-runs-module.tokens.js';
import type { AgentRunsModuleOptions, AgentRunsOptionsFactory } from '../../lib/module/agent-runs-module.options.js';
import type { ModuleSettings } from '../../lib/module/module-settings.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import {
  agentOf,
  agentWith,
  bootHost,
  bootProblems,
  callTool,
  quiet,
  silentModel,
  toolOf,
} from '../support/nest-host.js';

const settingsOf = (app: INestApplicationContext): ModuleSettings => app.get(AGENT_RUNS_SETTINGS, { strict: false });

@Injectable()
class Tools {
  @AgentTool({
    name: 'add',
    description: 'Adds.',
    input: { properties: { a: { type: 'integer' } }, required: ['a'] },
    recovery: 'safe',
  })
  add({ a }: { a: number }) {
    return a + 1;
  }
}

@Injectable()
class FakeTools extends Tools {
  @AgentTool({ name: 'add', description: 'Pretends to add.', input: {} })
  override add() {
    return 7;
  }
}

describe('A host application with agent runs', () => {
  it('CFG-7: executes a run in an application context, tools included', async () => {
    const model = scriptedModel([{ calls: [{ name: 'add', args: { a: 41 } }] }, { text: 'It is 42.' }]);
    const app = await bootHost({
      providers: [Tools, agentWith([Tools])],
      runs: { ...quiet, models: { default: model } },
    });
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'What is 41 + 1?' });
    expect(run).toMatchObject({ status: 'completed', output: 'It is 42.' });
    expect(model.requests[0]?.tools).toEqual([
      expect.objectContaining({
        name: 'add',
        inputSchema: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] },
      }),
    ]);
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('42');
    await app.close();
  });

  it('gives the host its injectables, wherever it injects them', async () => {
    @Injectable()
    class HostService {
      constructor(
        @Inject(RunService) readonly runs: RunService,
        @Inject(RunWorker) readonly worker: RunWorker,
        @Inject(RunRecovery) readonly recovery: RunRecovery,
        @Inject(RunMetrics) readonly metrics: RunMetrics,
        @InjectRunStore() readonly store: RunStore,
      ) {}
    }
    const app = await bootHost({ imports: [{ module: class Inner {}, providers: [HostService] }] });
    const host = app.get(HostService, { strict: false });
    expect(host.runs).toBeInstanceOf(RunService);
    expect(host.worker.status()).toMatchObject({ state: 'ready' });
    expect(host.recovery).toBeInstanceOf(RunRecovery);
    expect(host.metrics).toBeInstanceOf(RunMetrics);
    expect(host.store).toBeInstanceOf(MemoryRunStore);
    await app.close();
  });

  it('CFG-4: worker: false accepts runs and never claims', async () => {
    const app = await bootHost({ providers: [agentWith([])], runs: { ...quiet, worker: false } });
    const run = await app.get(RunService).start({ agent: 'support', prompt: 'Hello' });
    expect(app.get(RunWorker).status()).toMatchObject({ state: 'off' });
    expect((await app.get(RunService).get(run.id)).status).toBe('pending');
    await app.close();
  });

  it('works under @nestjs/testing, where providers can be replaced', async () => {
    const module = await Test.createTestingModule({
      imports: [AgentRunsModule.forRoot(quiet)],
      providers: [Tools, agentWith(['add'])],
    })
      .overrideProvider(Tools)
      .useClass(FakeTools)
      .compile();
    await module.init();
    expect(await callTool(toolOf(module, 'add'), { a: 1 })).toEqual({ entered: 1, value: 7 });
    await module.close();
  });
});

describe('Where the options come from', () => {
  const options: AgentRunsModuleOptions = { models: { default: silentModel }, lease: '3s', pollInterval: '100ms' };
  @Injectable()
  class OptionsService implements AgentRunsOptionsFactory {
    createAgentRunsOptions(): Promise<AgentRunsModuleOptions> {
      return Promise.resolve(options);
    }
  }
  const ConfigModule: DynamicModule = {
    module: class ConfigModule {},
    providers: [OptionsService, { provide: 'LEASE', useValue: '3s' }],
    exports: [OptionsService, 'LEASE'],
  };

  it.each<[string, () => DynamicModule]>([
    ['forRoot', () => AgentRunsModule.forRoot({ ...options, trigger: false })],
    [
      'useFactory',
      () =>
        AgentRunsModule.forRootAsync({
          imports: [ConfigModule],
          inject: ['LEASE'],
          useFactory: async (lease: '3s') => Promise.resolve({ ...options, lease }),
          trigger: false,
        }),
    ],
    ['useClass', () => AgentRunsModule.forRootAsync({ useClass: OptionsService, trigger: false })],
    [
      'useExisting',
      () => AgentRunsModule.forRootAsync({ imports: [ConfigModule], useExisting: OptionsService, trigger: false }),
    ],
  ])('CFG-2: %s', async (_way, runsModule) => {
    const app = await bootHost({ runsModule: runsModule(), providers: [agentWith([])] });
    expect(settingsOf(app).engine).toMatchObject({ worker: true, leaseMs: 3_000, pollMs: 100, pollIdleMs: 500 });
    expect(agentOf(app).model).toBe(silentModel);
    await app.close();
  });

  it('CFG-2: structure is static, also next to an asynchronous factory', async () => {
    const app = await bootHost({
      runsModule: AgentRunsModule.forRootAsync({ useFactory: () => options, worker: false, trigger: 'schedule' }),
    });
    expect(settingsOf(app)).toMatchObject({ engine: { worker: false }, jobs: false });
    await app.close();
    expect(
      await bootProblems({
        runsModule: AgentRunsModule.forRootAsync({ useFactory: () => ({ worker: false }) as never, trigger: false }),
      }),
    ).toEqual([expect.stringMatching(/"worker" is not supported. It is fixed when the module is declared/)]);
  });

  it('isGlobal: false keeps it to the modules that import it', async () => {
    @Injectable()
    class Inner {
      constructor(@Inject(RunService) readonly runs: RunService) {}
    }
    const boot = (isGlobal?: boolean) =>
      bootHost({
        runsModule: AgentRunsModule.forRoot({ ...quiet, ...(isGlobal !== undefined && { isGlobal }) }),
        imports: [{ module: class InnerModule {}, providers: [Inner] }],
      });
    await (await boot()).close();
    await expect(boot(false)).rejects.toThrow(/can't resolve dependencies of the Inner/);
  });

  // B135
  it.each<[string, object, string | RegExp]>([
    ['an unknown option', { leases: 3, models: {} }, /unknown option "leases". Known are: models, defaults, lease/],
    ['a bad duration', { lease: 'soon' }, /^lease is "soon", which is no duration/],
    ['NaN', { pollInterval: Number.NaN }, /^pollInterval is .*which is no duration/],
    ['infinity', { maxConcurrentRuns: Infinity }, /^maxConcurrentRuns is Infinity/],
    ['a negative number', { maxRecoveries: -1 }, /^maxRecoveries is -1; it must be a whole number of at least 0/],
    ['a bad cron', { reconcileEvery: '* * * x *' }, /^reconcileEvery is "\* \* \* x \*", which is no cron expression/],
    ['neither duration nor cron', { backoffEvery: 'often' }, /^backoffEvery is "often", which is neither/],
    ['an interval longer than timers can wait', { expireEvery: '30d' }, /^expireEvery is longer than 24 days/],
    ['a model that is none', { models: { default: {} } }, /^models\.default is \{\}, no model client/],
    [
      'a bare AI SDK model',
      { models: { default: { specificationVersion: 'v3', doGenerate: () => null } } },
      /^models\.default is a model of the AI SDK. Wrap it/,
    ],
    ['bad defaults', { defaults: { maxTurns: 0, modle: 'x' } }, /^defaults: maxTurns is 0/],
    ['unknown defaults', { defaults: { modle: 'x' } }, /^defaults: unknown option "modle"/],
    ['a flag that is none', { allowMemoryStore: 'true' }, /^allowMemoryStore is "true"; it must be true or false/],
    ['a worker flag that is none', { worker: 'off' }, /^worker is "off"; it must be true or false/],
    ['a trigger that is none', { trigger: 'cron' }, /^trigger is "cron"; it must be 'schedule', 'interval' or false/],
    ['a callback that is none', { onStoreFailure: 3 }, /^onStoreFailure is 3; it must be a function/],
    ['a worker name', { workerName: 'a b' }, /^workerName is "a b"/],
    ['an approval life that is none', { approvalExpires: -5 }, /^approvalExpires is -5/],
    ['an infinite approval life', { approvalExpires: Infinity }, /^approvalExpires is .*which is no duration/],
    [
      'a life beyond the last date',
      { approvalExpires: Number.MAX_SAFE_INTEGER },
      /^approvalExpires is 9007199254740991/,
    ],
  ])('CFG-1: %s is a boot error', async (_what, wrong, problem) => {
    const problems = await bootProblems({ runs: { ...quiet, ...wrong } });
    expect(problems.filter((text) => text.match(problem))).toHaveLength(1);
  });

  // B135
  it.each([['30d', 2_592_000_000] as const, [2 ** 31, 2 ** 31] as const, [8e15, 8e15] as const])(
    'PPL-5: an approval may live for %p',
    async (approvalExpires, ms) => {
      const app = await bootHost({ runs: { ...quiet, approvalExpires } });
      expect(settingsOf(app).engine.approvalExpiresMs).toBe(ms);
      expect(new Date(Date.now() + ms).getTime()).not.toBeNaN();
      await app.close();
    },
  );

  it('CFG-1: forRootAsync says at once what cannot work', () => {
    expect(() => AgentRunsModule.forRootAsync({ trigger: false })).toThrow(/exactly one of useFactory, useClass/);
    expect(() => AgentRunsModule.forRootAsync({ useFactory: () => ({}), lease: '3s' } as never)).toThrow(
      /no option "lease" here. Values are returned by the factory/,
    );
  });
});

describe('One application, one module', () => {
  it('CFG-1: a second forRoot fails at boot', async () => {
    const problems = await bootProblems({
      imports: [{ module: class Inner {}, imports: [AgentRunsModule.forRoot(quiet)] }],
    });
    expect(problems).toEqual([expect.stringMatching(/^AgentRunsModule\.forRoot was imported 2 times/)]);
  });

  it('CFG-1: forRoot and forRootAsync together fail too', async () => {
    const problems = await bootProblems({
      imports: [AgentRunsModule.forRootAsync({ useFactory: () => ({}), trigger: false })],
    });
    expect(problems.join()).toMatch(/imported 2 times/);
  });

  it('one definition imported in two modules is one module', async () => {
    const runsModule = AgentRunsModule.forRoot(quiet);
    const app = await bootHost({ runsModule, imports: [{ module: class Inner {}, imports: [runsModule] }] });
    await app.close();
  });

  it('two applications in one process do not know of each other', async () => {
    const [one, two] = await Promise.all([
      bootHost({ providers: [agentWith([], { name: 'one' })] }),
      bootHost({ providers: [agentWith([], { name: 'two' })] }),
    ]);
    expect(
      one
        .get(RunService)
        .definitions()
        .map(({ name }) => name),
    ).toEqual(['one']);
    expect(
      two
        .get(RunService)
        .definitions()
        .map(({ name }) => name),
    ).toEqual(['two']);
    expect(one.get(RunService)).not.toBe(two.get(RunService));
    await one.close();
    expect(two.get(RunWorker).status().state).toBe('ready');
    await two.close();
  });
});

describe('The store', () => {
  class HostStore extends MemoryRunStore {}
  const storeProvider = { provide: RunStore, useClass: HostStore };
  // A fresh object each time: Nest marks the definitions it has seen.
  const storeModule = (module: new () => object, global = false): DynamicModule => ({
    module,
    global,
    providers: [storeProvider],
    exports: [RunStore],
  });
  class StoreModule {}
  class OtherModule {}
  const effective = async (options: Parameters<typeof bootHost>[0]): Promise<unknown> => {
    const app = await bootHost(options);
    const store: unknown = app.get(AGENT_RUNS_STORE, { strict: false });
    await app.close();
    return store;
  };

  it('is the RunStore of a global module, or of one that is imported for it', async () => {
    expect(await effective({ imports: [storeModule(StoreModule, true)] })).toBeInstanceOf(HostStore);
    expect(await effective({ runs: { ...quiet, imports: [storeModule(StoreModule)] } })).toBeInstanceOf(HostStore);
  });

  it('CFG-1: a RunStore that cannot be seen is a boot error, not a store in memory', async () => {
    expect(await bootProblems({ providers: [storeProvider] })).toEqual([
      expect.stringMatching(/^HostModule provides RunStore, but AgentRunsModule cannot see it/),
    ]);
  });

  it('CFG-1: two stores are one too many', async () => {
    expect(await bootProblems({ imports: [storeModule(StoreModule, true), storeModule(OtherModule, true)] })).toEqual([
      expect.stringMatching(/^RunStore is provided 2 times, by StoreModule, OtherModule/),
    ]);
  });

  describe('in production', () => {
    const before = process.env.NODE_ENV;
    beforeEach(() => {
      process.env.NODE_ENV = 'production';
    });
    afterEach(() => {
      process.env.NODE_ENV = before;
    });

    it('CFG-5: must outlive the process, unless allowed', async () => {
      expect(await bootProblems({})).toEqual([
        expect.stringMatching(/^NODE_ENV is production and the store memory does not outlive the process/),
      ]);
      const app = await bootHost({ runs: { ...quiet, allowMemoryStore: true } });
      await app.close();
    });
  });
});

describe('Observers and guardrails', () => {
  const events: LifecycleEvent[] = [];
  @ObserveRuns()
  class Recorder implements RunObserver {
    onEvent(event: LifecycleEvent): void {
      events.push(event);
    }
  }
  @ObserveRuns()
  class Failing implements RunObserver {
    onEvent(): never {
      throw new Error('broken observer');
    }
  }
  const model = () => scriptedModel([{ text: 'Hi.' }]);

  it('OPS-4: observers are told in order, failing ones change nothing, diagnostics_channel hears the same', async () => {
    events.length = 0;
    const heard: unknown[] = [];
    const listen = (message: unknown): void => void heard.push(message);
    channel('agent-runs:run.completed').subscribe(listen);
    const app = await bootHost({
      providers: [Failing, Recorder, agentWith([])],
      runs: { ...quiet, models: { default: model() }, redactKeys: ['owner', 'attempt'] },
    });
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'Hello', sessionId: 's' });
    await app.close();
    channel('agent-runs:run.completed').unsubscribe(listen);
    expect(run.status).toBe('completed');
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)).toMatchObject({ runId: run.id, type: 'run.completed', agent: 'support', sessionId: 's' });
    expect(heard).toEqual([expect.objectContaining({ runId: run.id, type: 'run.completed' })]);
    const values = events
      .flatMap(({ details }) => [details.owner, details.attempt])
      .filter((value) => value !== undefined);
    expect(new Set(values)).toEqual(new Set(['[redacted]']));
  });

  it('STR-2: a provider with @ScreenInput screens prompts; a second one is a boot error', async () => {
    @ScreenInput()
    class Guardrail implements InputGuardrail {
      screen({ kind }: ScreenedInput): InputVerdict {
        return { refuse: `no ${kind}s today` };
      }
    }
    @ScreenInput()
    class Second extends Guardrail {}
    const client = model();
    const app = await bootHost({
      providers: [Guardrail, agentWith([])],
      runs: { ...quiet, models: { default: client } },
    });
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'Hello' });
    expect(run).toMatchObject({ status: 'blocked', error: { message: expect.stringContaining('no prompts today') } });
    expect(client.requests).toEqual([]);
    await app.close();
    expect(await bootProblems({ providers: [Guardrail, Second] })).toEqual([
      expect.stringMatching(/^Several providers carry @ScreenInput: Guardrail, Second/),
    ]);
  });

  it('CFG-1: a class with @ObserveRuns but without onEvent', async () => {
    // @ts-expect-error -- the compiler refuses it too
    @ObserveRuns()
    class Deaf {}
    expect(await bootProblems({ providers: [Deaf] })).toEqual([
      'Deaf carries @ObserveRuns but has no method onEvent().',
    ]);
  });
});

describe('What operators see', () => {
  it('CFG-8: one start-up line names the store, agents with versions and the settings of the worker', async () => {
    const log = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
    try {
      const app = await bootHost({
        providers: [agentWith([], { version: '2' }), agentWith([], { version: '10' })],
        runs: { ...quiet, trigger: 'interval', backoffEvery: '250ms', expireEvery: '0 * * * *' },
      });
      const lines = log.mock.calls.map(([line]) => String(line)).filter((line) => line.startsWith('Store '));
      expect(lines).toEqual([
        'Store memory; agents support@2, support@10; worker on (10 runs at a time, lease 60s, poll 1s); jobs by interval (reconcile every 30s, backoff every 250ms, expire at 0 * * * *)',
      ]);
      await app.close();
    } finally {
      log.mockRestore();
    }
  });

  it('nothing runs before the checks have passed', async () => {
    const opened = jest.spyOn(MemoryRunStore.prototype, 'open');
    try {
      await bootProblems({ providers: [agentWith(['missing'])] });
      expect(opened).not.toHaveBeenCalled();
    } finally {
      opened.mockRestore();
    }
  });

  it('CFG-6: agents are there when the host initialises its own providers', async () => {
    const seen: string[] = [];
    @Injectable()
    class HostService implements OnModuleInit {
      constructor(@Inject(RunService) private readonly runs: RunService) {}
      onModuleInit(): void {
        seen.push(...this.runs.definitions().map(({ name }) => name));
      }
    }
    @Module({ imports: [AgentRunsModule.forRoot(quiet)], providers: [HostService, agentWith([])] })
    class HostModule {}
    const app = await NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
    expect(seen).toEqual(['support']);
    await app.close();
  });
});
