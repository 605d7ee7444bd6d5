import {
  Controller,
  Inject,
  Injectable,
  type PipeTransform,
  type Provider,
  Query,
  Scope,
  UsePipes,
} from '@nestjs/common';
import { Agent } from '../../lib/decorators/provider.decorators.js';
import type { AgentOptions } from '../../lib/decorators/agent.options.js';
import { AgentTool, RecoverTool } from '../../lib/decorators/tool.decorators.js';
import type { AgentToolOptions } from '../../lib/decorators/agent-tool.options.js';
import { didNotHappen } from '../../lib/tools/nest-tool-caller.js';
import { AgentRunsModule } from '../../lib/module/agent-runs.module.js';
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

const tool = (options: Partial<AgentToolOptions> = {}) =>
  AgentTool({ name: 't', description: 'Does it.', input: {}, ...options }) as MethodDecorator;

/** A provider with one tool. */
function toolsWith(options: Partial<AgentToolOptions> = {}, name = 'Tools'): new () => object {
  const { [name]: Tools } = {
    [name]: class {
      run() {
        return name;
      }
    },
  };
  tool(options)(Tools!.prototype, 'run', Object.getOwnPropertyDescriptor(Tools!.prototype, 'run')!);
  Injectable()(Tools!);
  return Tools!;
}

const agent = (options: Partial<AgentOptions>): Provider => agentWith([], options);

describe('What is wrong with a registration fails at boot (CFG-1)', () => {
  const pipe: PipeTransform = { transform: (value: unknown) => value };

  @Injectable()
  class PipedTools {
    @tool({ approval: true })
    @UsePipes(pipe)
    run() {
      return 1;
    }
  }
  @Injectable()
  class RouteTools {
    @tool()
    run(@Query('q') q: string) {
      return q;
    }
  }
  @Injectable()
  class GeneratorTools {
    @tool()
    async *run() {
      yield await Promise.resolve(1);
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class RequestTools {
    @tool()
    run() {
      return 1;
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class Tenant {}
  @Injectable()
  class TenantTools {
    constructor(@Inject(Tenant) readonly tenant: Tenant) {}
    @tool()
    run() {
      return 1;
    }
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class TransientTools {
    @tool()
    run() {
      return 1;
    }
  }
  class BaseTools {
    @tool()
    run() {
      return 1;
    }
  }
  @Injectable()
  class OverridingTools extends BaseTools {
    override run() {
      return 2;
    }
  }
  /** As tracing and caching decorators do it. */
  const replacing: MethodDecorator = (_target, _key, descriptor) => {
    const original = descriptor.value as unknown as (...args: unknown[]) => unknown;
    descriptor.value = function (this: unknown, ...args: unknown[]) {
      return original.apply(this, args);
    } as never;
  };
  /** As binding decorators do it. */
  const binding: MethodDecorator = (_target, _key, { value }) => ({ configurable: true, get: () => value as never });
  @Injectable()
  class TracedTools {
    @replacing
    @tool()
    run() {
      return 1;
    }
    @tool({ name: 'other' })
    @replacing
    other() {
      return 2;
    }
  }
  @Injectable()
  class BoundTools {
    @binding
    @tool()
    run() {
      return 1;
    }
  }
  @Injectable()
  class TracedProbe {
    @replacing
    @RecoverTool('t')
    find() {
      return didNotHappen();
    }
  }
  @Injectable()
  class LonelyProbe {
    @RecoverTool('nothing')
    find() {
      return didNotHappen();
    }
  }
  @Injectable()
  class TwoProbes {
    @tool({ recovery: 'probe' })
    run() {
      return 1;
    }
    @RecoverTool('t')
    one() {
      return didNotHappen();
    }
    @RecoverTool('t')
    two() {
      return didNotHappen();
    }
  }

  it.each<[string, Provider[], string | RegExp]>([
    ['an agent without a version', [agent({ version: undefined })], /^Agent support \(SupportAgent\) has no version/],
    ['an agent version that is no dotted integer', [agent({ version: 'v1' })], /version "v1" is not allowed/],
    ['an agent version with a leading zero', [agent({ version: '01' })], /version "01" is not allowed/],
    [
      'the same agent twice',
      [agent({}), agentWith([])],
      /^Agent support@1 is registered twice: SupportAgent and SupportAgent/,
    ],
    [
      'versions of equal rank',
      [agent({ version: '1' }), agent({ version: '1.0' })],
      /^Agent support@1\.0 is registered twice/,
    ],
    ['an agent name with a blank', [agent({ name: 'sup port' })], /agent name "sup port" is not allowed/],
    ['an agent without instructions', [agent({ instructions: ' ' })], /has no instructions/],
    [
      'an unknown model',
      [agent({ model: 'gpt' })],
      /model "gpt", which does not exist. Models given to AgentRunsModule: default/,
    ],
    ['a model name from Object.prototype', [agent({ model: 'toString' })], /model "toString", which does not exist/],
    [
      'an unknown tool',
      [toolsWith(), agentWith(['x'])],
      /names the tool 'x', which does not exist. Registered tools: t@1, ask_user@1\.$/,
    ],
    ['an unknown version of a tool', [toolsWith(), agentWith(['t@2'])], /names the tool 't@2'/],
    ['a class that nobody provides', [agentWith([toolsWith()])], /names the class Tools, but no provider of it/],
    ['a tool list made at run time', [agentWith([() => []])], /lists made at run time are not supported/],
    ['tools that are no list', [agent({ tools: (() => []) as never })], /tools is a function; it must be a list/],
    [
      'two versions of a tool in one agent',
      [toolsWith(), toolsWith({ version: '2' }, 'B'), agentWith(['t@1', 't'])],
      /has t@1 and t@2/,
    ],
    [
      'middleware',
      [agent({ middleware: [] } as never)],
      /"middleware" is not supported. Runs have no persistence for it/,
    ],
    ['tools that the provider executes', [agent({ providerTools: [] } as never)], /"providerTools" is not supported/],
    [
      'an unknown option of an agent',
      [agent({ maxTurn: 3 } as never)],
      /unknown option "maxTurn". Known are: name, version/,
    ],
    ['maxTurns 0', [agent({ maxTurns: 0 })], /maxTurns is 0; it must be a whole number of at least 1/],
    ['maxTurns NaN', [agent({ maxTurns: Number.NaN })], /maxTurns is NaN/],
    ['toolConcurrency 1.5', [agent({ toolConcurrency: 1.5 })], /toolConcurrency is 1\.5/],
    ['a negative duration', [agent({ modelTimeout: -1 })], /modelTimeout is -1, which is no duration/],
    ['an infinite duration', [agent({ maxDuration: Infinity })], /maxDuration is .*which is no duration/],
    [
      'a bad retry',
      [agent({ modelRetry: { maxAttempts: 0, delay: 3 } as never })],
      /modelRetry: unknown option "delay"/,
    ],
    [
      'a model setting that is none',
      [agent({ modelSettings: { heat: 1 } as never })],
      /modelSettings: unknown option "heat"/,
    ],
    [
      'a temperature that is no number',
      [agent({ modelSettings: { temperature: Number.NaN } })],
      /modelSettings\.temperature is NaN; it must be a number/,
    ],
    [
      'provider options that the definition hash cannot see',
      [agent({ modelSettings: { providerOptions: { openai: { now: new Date() } } as never } })],
      /modelSettings\.providerOptions is .*JSON values/,
    ],
    [
      'stop sequences that are a text',
      [agent({ modelSettings: { stopSequences: 'END' as never } })],
      /must be a list of texts/,
    ],
    [
      'model settings that are none',
      [agent({ modelSettings: 'hot' as never })],
      /modelSettings is "hot"; it must be an object/,
    ],
    [
      'a tool choice of a tool that the agent does not have',
      [agent({ toolChoice: { tool: 'nothing' } })],
      /toolChoice is \{"tool":"nothing"\}; it must be .* one of its tools: it has none/,
    ],
    [
      'a demanded call without tools',
      [agent({ tools: [], toolChoice: 'required' })],
      /toolChoice is "required".*it has none/,
    ],
    ['a tool choice that is none', [agent({ toolChoice: 'any' as never })], /toolChoice is "any"/],
    [
      'a session mode that is none',
      [agent({ sessionMode: 'both' as never })],
      /sessionMode is "both"; it must be one of: serial, parallel/,
    ],
    [
      'a tool name that providers refuse',
      [toolsWith({ name: 'refund payment' })],
      /tool name "refund payment" is not allowed/,
    ],
    ['a tool name of 65 characters', [toolsWith({ name: 'a'.repeat(65) })], /is not allowed. Use 1-64 characters/],
    [
      'a tool without a name',
      [toolsWith({ name: undefined as never })],
      /^Tools\.run: the tool name undefined is not allowed/,
    ],
    ['the same tool twice', [toolsWith(), toolsWith({}, 'B')], /^Tool t@1 is registered twice: Tools\.run and B\.run/],
    ['a tool version that is no dotted integer', [toolsWith({ version: 'latest' })], /version "latest" is not allowed/],
    ['a tool without a description', [toolsWith({ description: '' })], /^Tool t \(Tools\.run\) has no description/],
    [
      'a tool without an input',
      [toolsWith({ input: undefined as never })],
      /^Tool t \(Tools\.run\) has no input schema/,
    ],
    ['an input that is no schema', [toolsWith({ input: 'x' as never })], /^The input of tool t@1 is no schema/],
    [
      'an output that is no schema',
      [toolsWith({ output: { type: 'nothing' } })],
      /^The output of tool t@1 is no valid JSON Schema/,
    ],
    [
      'an unknown recovery',
      [toolsWith({ recovery: 'never' as never })],
      /recovery is "never"; it must be one of: manual, inform/,
    ],
    [
      'a probe without @RecoverTool',
      [toolsWith({ recovery: 'probe' })],
      /recovery 'probe' but no @RecoverTool\('t'\) method/,
    ],
    [
      'a @RecoverTool for no tool',
      [LonelyProbe],
      /^LonelyProbe\.find is @RecoverTool\('nothing'\), but there is no such tool/,
    ],
    ['two probes of one tool', [TwoProbes], /^Two methods are @RecoverTool\('t'\): TwoProbes\.one and TwoProbes\.two/],
    [
      'transactional without such a store',
      [toolsWith({ recovery: 'transactional' })],
      /but the store memory has no transactions/,
    ],
    [
      'an approval that is no rule',
      [toolsWith({ approval: 'yes' as never })],
      /approval is "yes"; it must be a boolean or a function/,
    ],
    ['a pipe on a tool with approval', [PipedTools], /has approval and a pipe/],
    ['a route decorator on a parameter', [RouteTools], /parameter 1 has a decorator of HTTP routes/],
    ['a generator', [GeneratorTools], /is a generator/],
    ['a bad timeout', [toolsWith({ timeout: '3 weeks' as never })], /timeout is "3 weeks", which is no duration/],
    [
      'a transaction timeout without a transaction',
      [toolsWith({ transactionTimeout: '1s' })],
      /transactionTimeout is only for/,
    ],
    ['an unknown option of a tool', [toolsWith({ recover: 'safe' } as never)], /unknown option "recover"/],
    ['a request-scoped tool class', [RequestTools], /^RequestTools is request-scoped/],
    ['a tool class that depends on a request', [Tenant, TenantTools], /^TenantTools is request-scoped, or depends on/],
    ['a transient tool class', [TransientTools], /^TransientTools is transient/],
    // R227
    ['a decorator that replaces the method', [TracedTools], /^TracedTools\.run is decorated as a tool or probe, but a/],
    ['a decorator that makes it an accessor', [BoundTools], /^BoundTools\.run is decorated as a tool or probe, but a/],
    ['a decorator that replaces a probe', [toolsWith(), TracedProbe], /^TracedProbe\.find is decorated as a tool or/],
    ['an override that lost its decorators', [OverridingTools], /^OverridingTools\.run overrides BaseTools\.run/],
  ])('CFG-1: %s', async (_what, providers, problem) => {
    const problems = await bootProblems({ providers });
    expect(problems.filter((text) => text.match(problem))).toHaveLength(1);
  });

  it('CFG-1: a request-scoped agent class', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {}
    Agent({ name: 'support', version: '1', instructions: 'Help.' })(Scoped);
    // The scope of the last decorator stands.
    Injectable({ scope: Scope.REQUEST })(Scoped);
    expect(await bootProblems({ providers: [Scoped] })).toEqual([expect.stringMatching(/^Scoped is request-scoped/)]);
  });

  it('CFG-1: a tool on a controller', async () => {
    @Controller()
    class OrdersController {
      @tool()
      run() {
        return 1;
      }
    }
    expect(await bootProblems({ controllers: [OrdersController] })).toEqual([
      expect.stringMatching(
        /^OrdersController\.run is decorated as a tool or probe, but OrdersController is a controller/,
      ),
    ]);
  });

  it('CFG-1: a transaction timeout above a third of the lease', async () => {
    const problems = await bootProblems({
      providers: [toolsWith({ recovery: 'transactional', transactionTimeout: '5s' })],
      runs: { ...quiet, lease: '9s' },
    });
    expect(problems).toContain(
      'Tool t (Tools.run): transactionTimeout is 5000 ms, more than a third of the lease (3000 ms).',
    );
  });

  it('CFG-1: all problems of all registrations come in one error, and none only follows from another', async () => {
    const problems = await bootProblems({
      providers: [
        toolsWith({ description: '', recovery: 'probe' }),
        toolsWith({ name: 'no good' }, 'Bad'),
        RequestTools,
        agentWith(['t', 'missing', 'no good', RequestTools], { version: '' }),
        agent({ name: 'other', model: 'gpt', maxTurns: -1 }),
      ],
    });
    expect(problems).toHaveLength(8);
    expect(problems.join('\n')).not.toMatch(/names the class RequestTools|names the tool 'no good'/);
  });
});

describe('What is found', () => {
  it('agents and tools of class, factory and value providers, wherever they are, once each', async () => {
    class Valued {
      @tool({ name: 'valued' })
      run() {
        return 'value';
      }
    }
    @Injectable()
    class Made {
      constructor(private readonly word: string) {}
      @tool({ name: 'made' })
      run() {
        return this.word;
      }
    }
    @Injectable()
    class Plain {
      @tool({ name: 'plain' })
      run() {
        return 'plain';
      }
    }
    class Base {
      @tool({ name: 'inherited' })
      run() {
        return 'inherited';
      }
    }
    class Inherited extends Base {}
    const app = await bootHost({
      imports: [{ module: class Inner {}, providers: [Plain] }],
      providers: [
        { provide: 'VALUE', useValue: new Valued() },
        { provide: Made, useFactory: async () => Promise.resolve(new Made('made')) },
        { provide: Base, useClass: Inherited },
        { provide: 'ALIAS', useExisting: Made },
        { provide: 'NOTHING', useValue: null },
        { provide: 'NUMBER', useFactory: () => 7 },
        Plain,
        agentWith(['valued', 'made', Plain, Base]),
      ],
    });
    expect(agentOf(app).tools.map(({ name }) => name)).toEqual(['valued', 'made', 'plain', 'inherited']);
    expect(await callTool(toolOf(app, 'made'))).toMatchObject({ value: 'made' });
    await app.close();
  });

  it('JRN-7: versions compare as numbers, the highest is taken unless one is named', async () => {
    const app = await bootHost({
      providers: [
        toolsWith({ version: '9' }, 'Nine'),
        toolsWith({ version: '10' }, 'Ten'),
        agent({ version: '9' }),
        agent({ version: '10', tools: ['t'] }),
        agent({ version: '1.10', tools: ['t@9'] }),
      ],
    });
    expect(agentOf(app).version).toBe('10');
    expect(agentOf(app).tools.map(({ version }) => version)).toEqual(['10']);
    expect(agentOf(app, 'support', '1.10').tools.map(({ version }) => version)).toEqual(['9']);
    await app.close();
  });

  it('an agent is found by its class, and a class replaced by a subclass still means it', async () => {
    const One = agentWith([], { version: '1' });
    const Two = agentWith([], { version: '2' });
    class Replaced extends Two {}
    const app = await bootHost({ providers: [One, { provide: Two, useClass: Replaced }] });
    const find = (classRef: unknown, version?: string) => agentOf(app, classRef as string, version);
    expect(find(One).version).toBe('1');
    expect(find(Two).version).toBe('2');
    expect(find(One, '2').version).toBe('2');
    expect(() => find(class Other {})).toThrow('There is no agent');
    await app.close();
  });

  it('limits come from the agent, else from the defaults, else they are the documented ones', async () => {
    const app = await bootHost({
      providers: [
        toolsWith({ timeout: '2s' }),
        toolsWith({ name: 'u' }, 'B'),
        agent({ maxTurns: undefined, modelRetry: { maxAttempts: 7 }, tools: ['t', 'u'] }),
      ],
      runs: {
        ...quiet,
        models: { main: silentModel },
        defaults: {
          model: 'main',
          maxTurns: 5,
          toolTimeout: '9s',
          modelRetry: { initialDelay: '3s' },
          definitionChange: 'accept',
        },
      },
    });
    const { tools, ...definition } = agentOf(app);
    expect(definition).toMatchObject({
      modelName: 'main',
      model: silentModel,
      maxTurns: 5,
      modelRetry: { maxAttempts: 7, initialDelayMs: 3_000, maxDelayMs: 30_000, maxRetryAfterMs: 600_000 },
      toolConcurrency: 8,
      modelTimeoutMs: 600_000,
      maxDurationMs: null,
      sessionMode: 'serial',
      definitionChange: 'accept',
      truncatedCalls: 'fail',
      allowEmptyAnswer: false,
    });
    expect(tools.map(({ timeoutMs }) => timeoutMs)).toEqual([2_000, 9_000]);
    expect(tools[0]).toMatchObject({
      recovery: 'manual',
      approval: 'none',
      outputSchema: null,
      transactionTimeoutMs: 5_000,
    });
    await app.close();
  });
});

describe('forFeature', () => {
  @Injectable()
  class Orders {
    readonly name = 'orders';
  }
  @Injectable()
  class OrderTools {
    constructor(@Inject(Orders) private readonly orders: Orders) {}
    @tool()
    run() {
      return this.orders.name;
    }
  }

  it('provides agents and tools from what it imports', async () => {
    const OrdersModule = { module: class OrdersModule {}, providers: [Orders], exports: [Orders] };
    const app = await bootHost({
      imports: [
        AgentRunsModule.forFeature({ imports: [OrdersModule], tools: [OrderTools], agents: [agentWith([OrderTools])] }),
      ],
    });
    expect(await callTool(toolOf(app, 't'))).toMatchObject({ value: 'orders' });
    expect(app.get(OrderTools, { strict: false })).toBeInstanceOf(OrderTools);
    await app.close();
  });

  it('leaves classes to the module that provides them already', async () => {
    const Support = agentWith([OrderTools]);
    const app = await bootHost({
      imports: [AgentRunsModule.forFeature({ tools: [OrderTools], agents: [Support] })],
      providers: [Orders, OrderTools, Support],
    });
    expect(await callTool(toolOf(app, 't'))).toMatchObject({ value: 'orders' });
    await app.close();
  });

  it('CFG-1: refuses classes without decorators and unknown options', () => {
    expect(() => AgentRunsModule.forFeature({ tools: [Orders], agents: [Orders], agent: [] } as never)).toThrow(
      /no option "agent"[^]*agents contains Orders, which has no @Agent[^]*tools contains Orders/,
    );
  });
});
