import 'reflect-metadata';
import { type INestApplicationContext, Inject, Injectable, type Provider, Scope } from '@nestjs/common';
import type { ApprovalResolution, ApprovalResolver, ApprovalToResolve } from '../../lib/contracts/ports/host.port.js';
import type { ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { Run } from '../../lib/contracts/run-view.js';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import type { StandardSchema } from '../../lib/decorators/tool-value.js';
import { ResolveApprovals } from '../../lib/decorators/provider.decorators.js';
import { ASK_USER } from '../../lib/engine/ask-user-tool.js';
import { RunService } from '../../lib/engine/run-service.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { HOST_STORES, type StoredRuns } from '../support/host-stores.js';
import { agentWith, bootProblems, type HostOptions, quiet } from '../support/nest-host.js';

@Injectable()
class Ledger {
  readonly refunds: number[] = [];
}

@Injectable()
class PaymentTools {
  constructor(@Inject(Ledger) private readonly ledger: Ledger) {}

  @AgentTool({
    name: 'refund',
    description: 'Refunds an order.',
    input: { properties: { cents: { type: 'integer' } }, required: ['cents'] },
    approval: ({ cents }) => (cents > 100 ? { reason: 'a large amount', approverRole: 'finance' } : false),
  })
  refund({ cents }: JsonObject) {
    this.ledger.refunds.push(cents as number);
    return { refunded: cents };
  }

  @AgentTool({ name: 'close', description: 'Closes an order.', input: {} })
  async close(_input: object, context: ToolContext) {
    return (await context.requestApproval({ reason: 'for good' })).by;
  }
}

const refund = (cents: number) => ({ name: 'refund', args: { cents } });
const QUESTIONS = [{ id: 'city', text: 'Which city?', choices: ['Bonn', 'Ulm'] }];

/** An application with these tools over stored runs, at this place of its script. */
function hosting(
  script: Scripted[],
  agent: Parameters<typeof agentWith>[1] = {},
  { providers = [], tools = [PaymentTools] as unknown[] }: { providers?: Provider[]; tools?: unknown[] } = {},
): HostOptions {
  return {
    providers: [Ledger, PaymentTools, agentWith(tools, agent), ...providers],
    runs: { models: { default: scriptedModel(script, { place: 'transcript' }) } },
  };
}

const start = (app: INestApplicationContext): Promise<Run> =>
  app.get(RunService).startAndWait({ agent: 'support', prompt: 'go', actor: { id: 'carl' } });

/** What the model was told, call by call. */
async function told(app: INestApplicationContext, runId: string): Promise<unknown[]> {
  const messages = await app.get(RunService).messages(runId);
  return messages.flatMap((message) => (message.role === 'tool' ? message.content.map(({ output }) => output) : []));
}

describe.each(HOST_STORES)('people, in applications over $name', ({ create }) => {
  let stored: StoredRuns;
  beforeEach(async () => {
    stored = await create();
  });
  afterEach(() => stored.dispose());

  const GATED: Scripted[] = [{ calls: [refund(500), refund(5), { name: 'close' }] }, { text: 'done' }];

  it.each([
    ['the agent', hosting(GATED, { approvalMode: 'fail' })],
    [
      'the defaults',
      { ...hosting(GATED), runs: { ...hosting(GATED).runs, defaults: { approvalMode: 'fail' as const } } },
    ],
  ])(
    "PPL-7: approvalMode 'fail' of %s refuses what needs an approval at once, and the run goes on",
    async (_, host) => {
      const app = await stored.boot(host);
      const run = await start(app);
      expect(run).toMatchObject({ status: 'completed', interactions: [] });
      expect(await told(app, run.id)).toEqual([
        expect.stringMatching(/^Denied by system: .*without people/),
        { refunded: 5 },
        expect.stringMatching(/^Not approved: denied by system: .*without people/),
      ]);
      expect(app.get(Ledger).refunds).toEqual([5]);
    },
  );

  it('PPL-7: an agent that asks overrules defaults that do not', async () => {
    const host = hosting(GATED, { approvalMode: 'ask' });
    const app = await stored.boot({ ...host, runs: { ...host.runs, defaults: { approvalMode: 'fail' } } });
    expect(await start(app)).toMatchObject({ status: 'waiting', waitingFor: ['approval'] });
  });

  it('PPL-7: approvalMode is no part of the definition: what waits stays open, and what comes next is refused', async () => {
    const script: Scripted[] = [{ calls: [refund(500)] }, { calls: [refund(600)] }, { text: 'done' }];
    const before = await stored.boot(hosting(script));
    const run = await start(before);
    expect(run.status).toBe('waiting');
    await stored.close(before);

    const after = await stored.boot(hosting(script, { approvalMode: 'fail' }));
    const runs = after.get(RunService);
    const { interactions } = await runs.pendingInteractions({ approverRole: 'finance' });
    await runs.respond(run.id, interactions[0]?.id ?? '', { decision: 'approve', by: 'ann' });
    expect(await runs.result(run.id)).toMatchObject({ status: 'completed', definitionHash: run.definitionHash });
    expect(await told(after, run.id)).toEqual([{ refunded: 500 }, expect.stringMatching(/^Denied by system/)]);
    expect(after.get(Ledger).refunds).toEqual([500]);
  });

  it('PPL-7: a provider with @ResolveApprovals decides in the moment, with what is injected into it', async () => {
    const asked: ApprovalToResolve[] = [];
    @Injectable()
    class Policy {
      readonly limit = 1_000;
    }
    @ResolveApprovals()
    class Resolver implements ApprovalResolver {
      constructor(@Inject(Policy) private readonly policy: Policy) {}
      async resolve(one: ApprovalToResolve): Promise<ApprovalResolution | null> {
        asked.push(one);
        await Promise.resolve();
        if (one.tool === 'close') return { decision: 'approve', by: 'policy' };
        const cents = one.arguments['cents'] as number;
        return cents > this.policy.limit
          ? { decision: 'deny', by: 'policy', note: 'above 1000' }
          : { decision: 'approve', by: 'policy' };
      }
    }
    const script = [{ calls: [refund(500), refund(5), refund(5_000), { name: 'close' }] }, { text: 'done' }];
    const app = await stored.boot(hosting(script, {}, { providers: [Policy, Resolver] }));
    const run = await start(app);
    expect(run.status).toBe('completed');
    expect(await told(app, run.id)).toEqual([
      { refunded: 500 },
      { refunded: 5 },
      'Denied by policy: above 1000',
      'policy',
    ]);
    expect(asked).toMatchObject([
      { runId: run.id, tool: 'refund', reason: 'a large amount', approverRole: 'finance', actor: { id: 'carl' } },
      { tool: 'refund', arguments: { cents: 5_000 } },
      { tool: 'close', reason: 'for good' },
    ]);
    const { interactions } = await app.get(RunService).pendingInteractions({ runId: run.id });
    expect(interactions).toEqual([]);
  });

  it('PPL-7: what the resolver leaves open waits for a person, who answers in another application', async () => {
    let asked = 0;
    @ResolveApprovals()
    class Resolver implements ApprovalResolver {
      resolve(): null {
        asked += 1;
        return null;
      }
    }
    const host = () => hosting([{ calls: [refund(500)] }, { text: 'done' }], {}, { providers: [Resolver] });
    const before = await stored.boot(host());
    const run = await start(before);
    expect(run).toMatchObject({ status: 'waiting', waitingFor: ['approval'] });
    await stored.close(before);

    const after = await stored.boot(host());
    const runs = after.get(RunService);
    await runs.respond(run.id, run.interactions[0]?.id ?? '', { decision: 'approve', by: 'ann' });
    expect((await runs.result(run.id)).status).toBe('completed');
    expect([asked, after.get(Ledger).refunds]).toEqual([1, [500]]);
  });

  it('MOD-8: a Standard Schema that never answers costs its call the timeout of the tool, and nothing else', async () => {
    const never: StandardSchema<{ n: number }> = {
      '~standard': { version: 1, vendor: 'host', validate: () => new Promise(() => undefined) },
    };
    let entered = 0;
    @Injectable()
    class HangingTools {
      @AgentTool({
        name: 'hang',
        description: 'Never begins.',
        input: never,
        inputSchema: { type: 'object' },
        timeout: 20,
      })
      hang() {
        entered += 1;
      }
    }
    const script = [{ calls: [{ name: 'hang' }, refund(5)] }, { text: 'done' }];
    const app = await stored.boot(
      hosting(script, {}, { providers: [HangingTools], tools: [HangingTools, PaymentTools] }),
    );
    const run = await start(app);
    expect(run.status).toBe('completed');
    expect(await told(app, run.id)).toEqual([
      'The tool was not run: the check of the arguments did not end within 20 ms.',
      { refunded: 5 },
    ]);
    expect(entered).toBe(0);
  });

  it('PPL-8: an agent that names ASK_USER asks, and goes on with the answer in another application', async () => {
    const script: Scripted[] = [
      { calls: [{ name: ASK_USER, args: { questions: QUESTIONS } }, refund(5)] },
      { echo: true },
    ];
    const host = () => hosting(script, {}, { tools: [ASK_USER, PaymentTools] });
    const before = await stored.boot(host());
    const run = await start(before);
    expect(run).toMatchObject({ status: 'waiting', waitingFor: ['question'] });
    expect(run.interactions).toMatchObject([{ kind: 'question', tool: 'ask_user', questions: QUESTIONS }]);
    expect(before.get(Ledger).refunds).toEqual([5]);
    expect(before.get(RunService).definitions()[0]?.versions[0]?.tools).toContainEqual({
      name: 'ask_user',
      version: '1',
      recovery: 'safe',
      approval: 'none',
    });
    await stored.close(before);

    const after = await stored.boot(host());
    const runs = after.get(RunService);
    const answer = { action: 'accept', by: 'carl', answers: { city: 'Ulm' } } as const;
    await runs.respond(run.id, run.interactions[0]?.id ?? '', answer);
    expect((await runs.result(run.id)).status).toBe('completed');
    expect(await told(after, run.id)).toEqual([{ city: 'Ulm' }, { refunded: 5 }]);
    expect(after.get(Ledger).refunds).toEqual([]);
  });

  it('JRN-7: ask_user is in the definition like any tool: without it the run is not claimed', async () => {
    const script: Scripted[] = [{ calls: [{ name: ASK_USER, args: { questions: QUESTIONS } }] }, { text: 'done' }];
    const before = await stored.boot(hosting(script, {}, { tools: [`${ASK_USER}@1`, PaymentTools] }));
    const run = await start(before);
    await stored.close(before);
    const after = await stored.boot(hosting(script));
    const runs = after.get(RunService);
    await runs.respond(run.id, run.interactions[0]?.id ?? '', { action: 'decline', by: 'carl' });
    expect(runs.definitions()[0]?.versions[0]?.hash).not.toBe(run.definitionHash);
    await after.get(RunWorker).tick();
    expect(await runs.get(run.id)).toMatchObject({ status: 'pending', attempt: run.attempt });
  });
});

describe('what is wrong with a registration for people fails at boot', () => {
  @ResolveApprovals()
  class One implements ApprovalResolver {
    resolve(): null {
      return null;
    }
  }
  @ResolveApprovals()
  class Two extends One {}
  // @ts-expect-error -- the compiler refuses it too
  @ResolveApprovals()
  class Mute {}
  @Injectable({ scope: Scope.REQUEST })
  class Request {}
  @ResolveApprovals()
  class Scoped extends One {
    constructor(@Inject(Request) readonly request: Request) {
      super();
    }
  }
  @Injectable()
  class Impostor {
    @AgentTool({ name: ASK_USER, version: '2', description: 'Asks.', input: {} })
    ask() {
      return 1;
    }
  }

  it.each<[string, Provider[], RegExp]>([
    [
      'two approval resolvers',
      [One, Two],
      /^Several providers carry @ResolveApprovals: One, Two\. .* one approval resolver/,
    ],
    ['a resolver that resolves nothing', [Mute], /^Mute carries @ResolveApprovals but has no method resolve\(\)\.$/],
    ['a resolver of a request', [Request, Scoped], /^Scoped is request-scoped/],
    ['a tool with the name of a built-in one', [Impostor], /^Impostor\.ask: the name 'ask_user' belongs to a built-in/],
    [
      'a version of ask_user that is none',
      [agentWith(['ask_user@2'])],
      /names the tool 'ask_user@2', which does not exist\. Registered tools: ask_user@1\.$/,
    ],
    [
      'an approval mode that is none',
      [agentWith([], { approvalMode: 'never' as never })],
      /^Agent support \(SupportAgent\): approvalMode is "never"; it must be one of: ask, fail\.$/,
    ],
  ])('CFG-1: %s', async (_what, providers, problem) => {
    expect(await bootProblems({ providers })).toEqual([expect.stringMatching(problem)]);
  });

  it('CFG-1: all of it in one error, with what else is wrong', async () => {
    const problems = await bootProblems({
      providers: [One, Two, Mute, Impostor, agentWith(['ask_user', 'missing'])],
      runs: { ...quiet, defaults: { approvalMode: 'never' as never } },
    });
    expect(problems).toHaveLength(5);
    expect(problems.filter((text) => /^defaults: approvalMode/.test(text))).toHaveLength(1);
  });
});
