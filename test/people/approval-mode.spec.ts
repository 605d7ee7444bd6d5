import { describe, expect, it } from '@jest/globals';
import type { ToolMessage } from '../../lib/contracts/message.js';
import type { ApprovalResolver, ApprovalToResolve } from '../../lib/contracts/ports/host.port.js';
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { SystemClock } from '../../lib/system/system-ports.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { allInteractions } from '../support/sound-journal.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, reaches, World } from './world.js';

const NOBODY = 'It needs an approval, and this agent runs without people who could give it.';

/** Two gated calls, a free one, and a method that asks for an approval itself. */
function scene(options: Parameters<typeof agent>[2] = {}) {
  const ran: string[] = [];
  const model = scriptedModel(
    [
      {
        calls: [
          { name: 'gated', args: { n: 1 } },
          { name: 'gated', args: { n: 2 } },
          { name: 'inner', args: {} },
          { name: 'free', args: {} },
        ],
      },
      { text: 'done' },
    ],
    { place: 'transcript' },
  );
  const tools = [
    tool(
      'gated',
      ({ n }) => {
        ran.push(`gated ${String(n)}`);
        return n;
      },
      { recovery: 'manual', asks: () => ({ reason: 'money', approverRole: 'finance' }) },
    ),
    tool(
      'inner',
      async (_input, context) => {
        try {
          return (await context.requestApproval({ reason: 'inner', arguments: { cents: 5 } })).by;
        } catch (error) {
          if (AgentRunsError.is(error, 'APPROVAL_DENIED')) return error.message;
          throw error;
        }
      },
      { recovery: 'manual' },
    ),
    tool('free', () => 'free'),
  ];
  const results = () => (model.requests[1]?.messages.at(-1) as ToolMessage).content.map(({ output }) => output);
  return { ran, model, results, agents: agent(model, tools, options) };
}

describe.each(ENGINE_STORES)('approvals without people on $name', (store) => {
  it("PPL-7: approvalMode 'fail' refuses at once, and the run goes on", async () => {
    const { agents, results, ran } = scene({ approvalMode: 'fail' });
    const world = await World.over(store);
    const process = await world.process(agents);
    const run = await process.runs.startAndWait({ agent: 'support', prompt: 'go' });
    expect(run.status).toBe('completed');
    expect(results()).toEqual([
      `Denied by system: ${NOBODY}`,
      `Denied by system: ${NOBODY}`,
      `Not approved: denied by system: ${NOBODY}.`,
      'free',
    ]);
    expect(ran).toEqual([]);
    expect(await allInteractions(process.store, run.id)).toEqual([]);
    expect(await entriesOf(process.store, run.id, 'interaction.answered')).toMatchObject(
      [1, 2, 3].map(() => ({ decision: { decision: 'deny', by: 'system' } })),
    );
    await world.end();
  });

  // B055, B062
  it('PPL-7: a resolver decides in the moment, is asked once, and what it decides is journaled', async () => {
    const asked: ApprovalToResolve[] = [];
    const resolver: ApprovalResolver = {
      resolve: (one) => {
        asked.push(one);
        one.arguments.n = 99;
        return one.arguments.cents === 5 || asked.length === 1
          ? { decision: 'approve', by: 'policy-7', note: 'small' }
          : { decision: 'deny', by: 'policy-7' };
      },
    };
    const { agents, results, ran, model } = scene();
    const world = await World.over(store);
    const process = await world.process(agents, {}, { approvalResolver: resolver });
    const run = await process.runs.startAndWait({ agent: 'support', prompt: 'go', actor: { id: 'carl' } });
    expect(run.status).toBe('completed');
    expect(model.requests).toHaveLength(2);
    expect(results()).toEqual([1, 'Denied by policy-7.', 'policy-7', 'free']);
    expect(ran).toEqual(['gated 1']);
    expect(asked).toMatchObject([
      {
        runId: run.id,
        tool: 'gated',
        reason: 'money',
        approverRole: 'finance',
        operationKey: 'r1.m1.t0',
        actor: { id: 'carl' },
      },
      { tool: 'gated', operationKey: 'r1.m1.t1' },
      { tool: 'inner', reason: 'inner', arguments: { cents: 5 } },
    ]);
    const requested = await entriesOf(process.store, run.id, 'interaction.requested');
    expect(requested.map(({ digest }) => digest)).toEqual(asked.map(({ digest }) => digest));
    expect(await entriesOf(process.store, run.id, 'interaction.answered')).toMatchObject([
      { decision: { decision: 'approve', by: 'policy-7', note: 'small' } },
      { decision: { decision: 'deny', by: 'policy-7' } },
      { decision: { decision: 'approve', by: 'policy-7' } },
    ]);
    await world.end();
  });

  it('PPL-7: null, a throw and anything but a decision leave it to people', async () => {
    const answers: (() => unknown)[] = [
      () => null,
      () => {
        throw new Error('policy server is down');
      },
      () => true,
      () => ({ decision: 'APPROVE', by: 'x' }),
      () => ({ decision: 'approve' }),
      () => Promise.resolve({ approved: true }),
      () => undefined,
      () => ({ decision: 'approve', by: ' ' }),
      () => ({ decision: 'approve', by: 'x', note: 7 }),
      () => ({ decision: 'approve', by: 'x', arguments: { n: 1 } }),
      () => [{ decision: 'approve', by: 'x' }],
      () => Object.defineProperty({ by: 'x' }, 'decision', { enumerable: true, get: () => JSON.parse('{') as never }),
    ];
    for (const answer of answers) {
      const { agents, ran } = scene();
      const world = await World.over(store);
      const resolver = { resolve: answer } as unknown as ApprovalResolver;
      const process = await world.process(agents, {}, { approvalResolver: resolver });
      const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
      expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['approval'] });
      for (const ask of await asksOf(process, id, 3)) await process.runs.respond(id, ask.id, approve);
      await reaches(process, id, 'completed');
      expect(ran).toEqual(['gated 1', 'gated 2']);
      expect(process.logged.filter(({ level }) => level === 'warn').length > 0).toBe(answer !== answers[0]);
      await world.end();
    }
  });

  it("PPL-7: what a resolver leaves open is refused at once with approvalMode 'fail'", async () => {
    const { agents, results } = scene({ approvalMode: 'fail' });
    const world = await World.over(store);
    const resolver: ApprovalResolver = {
      resolve: ({ arguments: { n } }) => (n === 2 ? { decision: 'approve', by: 'policy-7' } : null),
    };
    const process = await world.process(agents, {}, { approvalResolver: resolver });
    await process.runs.startAndWait({ agent: 'support', prompt: 'go' });
    expect(results()).toEqual([`Denied by system: ${NOBODY}`, 2, `Not approved: denied by system: ${NOBODY}.`, 'free']);
    await world.end();
  });

  it('PPL-7: a resolver that does not answer leaves it to people', async () => {
    // Everything takes its time but the patience with the resolver.
    class Impatient extends SystemClock {
      override after(ms: number, callback: () => void): () => void {
        return super.after(ms === 5_000 ? 1 : ms, callback);
      }
    }
    const { agents } = scene();
    const world = await World.over(store);
    const resolver: ApprovalResolver = { resolve: () => new Promise(() => undefined) };
    const process = await world.process(agents, {}, { approvalResolver: resolver, clock: new Impatient() });
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, id, 'waiting');
    await asksOf(process, id, 3);
    expect(process.logged).toContainEqual(
      expect.objectContaining({ fields: expect.objectContaining({ code: 'RESOLVER_TIMED_OUT' }) }),
    );
    await world.end();
  });
});
