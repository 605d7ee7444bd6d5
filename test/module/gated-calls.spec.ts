// Calls that people decide, in whole applications that are stopped and started anew between the decisions.
import 'reflect-metadata';
import { type INestApplicationContext, Injectable, type Provider, Type } from '@nestjs/common';
import type { ToolMessage } from '../../lib/contracts/message.js';
import type { InteractionView } from '../../lib/contracts/run-view.js';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import { RunService } from '../../lib/engine/run-service.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { AgentRunsModule } from '../../lib/module/agent-runs.module.js';
import { HOST_STORES, type StoredRuns } from '../support/host-stores.js';
import { agentWith, type HostOptions } from '../support/nest-host.js';

/** Outside of every application: what was really done. */
const ledger: string[] = [];
beforeEach(() => void ledger.splice(0));

const NUMBERED = { properties: { n: { type: 'integer' } } } as const;

@Injectable()
class Tools {
  @AgentTool({ name: 'gated', description: 'Needs a person.', input: NUMBERED, approval: true })
  gated({ n }: { n?: number }) {
    ledger.push(`gated ${String(n)}`);
    return { did: n };
  }

  @AgentTool({ name: 'free', description: 'Needs nobody.', input: NUMBERED })
  free({ n }: { n?: number }) {
    ledger.push(`free ${String(n)}`);
    return { did: n };
  }
}

const call = (name: string, n: number) => ({ name, args: { n } });

function hosting(script: Scripted[]): { host: HostOptions; model: ReturnType<typeof scriptedModel> } {
  // As strict as providers are: every call its result, right after it, and none twice.
  const model = scriptedModel(script, { place: 'transcript' });
  return { model, host: { providers: [Tools, agentWith([Tools])], runs: { models: { default: model } } } };
}

const asksOf = async (app: INestApplicationContext, runId: string): Promise<InteractionView[]> =>
  (await app.get(RunService).pendingInteractions({ runId })).interactions;

describe.each(HOST_STORES)('gated calls, in applications over $name', ({ create }) => {
  let stored: StoredRuns;
  beforeEach(async () => {
    stored = await create();
  });
  afterEach(() => stored.dispose());

  // B037
  it('PPL-10: of gated and free calls in one reply the model gets all results in call order, with a restart between', async () => {
    const calls = [call('gated', 1), call('free', 2), call('gated', 3), call('free', 4)];
    const { host, model } = hosting([{ text: 'Doing four things.', calls }, { text: 'done' }]);
    const first = await stored.boot(host);
    const run = await first.get(RunService).startAndWait({ agent: 'support', prompt: 'go' });
    expect(run).toMatchObject({ status: 'waiting', waitingFor: ['approval'] });
    const [c1, c3] = run.interactions;
    await first.get(RunService).respond(run.id, c1!.id, { decision: 'approve', by: 'ann' });
    expect(await first.get(RunService).get(run.id)).toMatchObject({
      status: 'waiting',
      interactions: [{ id: c3!.id }],
    });
    await stored.close(first);

    const second = await stored.boot(host);
    await second.get(RunService).respond(run.id, c3!.id, { decision: 'deny', by: 'bob', note: 'no 👎' });
    expect((await second.get(RunService).result(run.id)).status).toBe('completed');
    expect(model.requests).toHaveLength(2);
    const { content } = model.requests[1]?.messages.at(-1) as ToolMessage;
    expect(content.map(({ outcome, output }) => [outcome, output])).toEqual([
      ['success', { did: 1 }],
      ['success', { did: 2 }],
      ['denied', 'Denied by bob: no 👎'],
      ['success', { did: 4 }],
    ]);
    expect([...ledger].sort()).toEqual(['free 2', 'free 4', 'gated 1']);
  });

  // B039
  it('PPL-4: two turns in a row that wait for approval are decided one after the other, each request complete', async () => {
    const { host, model } = hosting([{ calls: [call('gated', 1)] }, { calls: [call('gated', 2)] }, { text: 'done' }]);
    let app = await stored.boot(host);
    const { id } = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'go' });
    for (const n of [1, 2]) {
      const [ask] = await asksOf(app, id);
      expect(ask?.arguments).toEqual({ n });
      await stored.close(app);
      app = await stored.boot(host);
      await app.get(RunService).respond(id, ask!.id, { decision: 'approve', by: 'ann' });
      await app.get(RunService).result(id);
    }
    expect((await app.get(RunService).get(id)).status).toBe('completed');
    expect(model.requests.map(({ messages }) => messages.map(({ role }) => role))).toEqual([
      ['user'],
      ['user', 'assistant', 'tool'],
      ['user', 'assistant', 'tool', 'assistant', 'tool'],
    ]);
    expect(ledger).toEqual(['gated 1', 'gated 2']);
  });

  // B046
  it('PPL-6: a run that waits needs nobody: what is decided while no worker is there goes on when one is', async () => {
    const { host } = hosting([{ calls: [call('gated', 1)] }, { text: 'done' }]);
    const first = await stored.boot(host);
    const { id } = await first.get(RunService).startAndWait({ agent: 'support', prompt: 'go' });
    await stored.close(first);
    const office = await stored.boot({ ...host, runs: { ...host.runs, worker: false } });
    const [ask] = await asksOf(office, id);
    await office.get(RunService).respond(id, ask!.id, { decision: 'approve', by: 'ann' });
    expect(await office.get(RunService).get(id)).toMatchObject({ status: 'pending', interactions: [] });
    await stored.close(office);
    const last = await stored.boot(host);
    expect((await last.get(RunService).result(id)).status).toBe('completed');
    expect(ledger).toEqual(['gated 1']);
  });
});

describe('B047: a tool with approval asks, however it was registered', () => {
  class Alias {}
  @Injectable()
  class Sub extends Tools {}
  const forFeature = (): HostOptions => ({
    imports: [AgentRunsModule.forFeature({ tools: [Tools], agents: [agentWith([Tools]) as Type] })],
  });
  const providing = (tools: unknown[], ...providers: Provider[]): HostOptions => ({
    providers: [...providers, agentWith(tools)],
  });

  it.each<[string, HostOptions]>([
    ['by its class', providing([Tools], Tools)],
    ['by its name', providing(['gated'], Tools)],
    ['by name and version', providing(['gated@1'], Tools)],
    ['through forFeature', forFeature()],
    ['as a subclass', providing([Tools], Sub)],
    ['as a class in the place of another', providing([Tools], { provide: Tools, useClass: Sub })],
    ['from a factory', providing([Tools], { provide: Alias, useFactory: () => new Tools() })],
    ['as a value', providing(['gated'], { provide: 'tools', useValue: new Tools() })],
    ['under an alias', providing([Tools], Tools, { provide: Alias, useExisting: Tools })],
  ])('PPL-1: %s', async (_how, host) => {
    const [{ create }] = HOST_STORES as [(typeof HOST_STORES)[number]];
    const stored = await create();
    const model = scriptedModel([{ calls: [call('gated', 1)] }, { text: 'done' }]);
    const app = await stored.boot({ ...host, runs: { models: { default: model } } });
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'go' });
    await app.get(RunWorker).tick();
    expect(run).toMatchObject({ status: 'waiting', interactions: [{ tool: 'gated', arguments: { n: 1 } }] });
    expect(ledger).toEqual([]);
    await stored.dispose();
  });
});
