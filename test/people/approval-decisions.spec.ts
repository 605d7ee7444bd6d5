import { describe, expect, it } from '@jest/globals';
import type { InteractionResponse } from '../../lib/contracts/run-requests.js';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ToolMessage } from '../../lib/contracts/message.js';
import type { LifecycleEvent } from '../../lib/contracts/ports/host.port.js';
import { scriptedModel, type ScriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { agent, entryTypes, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { ENGINE_STORES } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, codeOf, deny, type Process, reaches, World } from './world.js';

const ONE_CALL: Scripted[] = [{ calls: [{ name: 'refund', args: { order: 'o-1', cents: 500 } }] }, { text: 'done' }];

/** An agent that refunds, a person has to agree, and every refund is in the ledger. */
function refunds(options: ToolOptions = {}, script: Scripted[] = ONE_CALL) {
  const ledger: JsonObject[] = [];
  const model = scriptedModel(script, { place: 'transcript' });
  const refund = tool('refund', (input) => void ledger.push(input), {
    recovery: 'manual',
    asks: () => ({ reason: 'money leaves', risk: 'high', approverRole: 'finance' }),
    ...options,
  });
  return { ledger, model, agents: agent(model, [refund]) };
}

const results = (model: ScriptedModel, request = 1) =>
  (model.requests[request]?.messages.at(-1) as ToolMessage).content;

async function waiting(process: Process) {
  const { id } = await process.runs.start({ agent: 'support', prompt: 'go', actor: { id: 'carl', roles: ['user'] } });
  await reaches(process, id, 'waiting');
  const [ask] = await asksOf(process, id, 1);
  return { id, ask: ask! };
}

// Bodies other products took for a yes.
const NEVER_AN_APPROVAL: unknown[] = [
  { approved: 'false' },
  { approved: 'no' },
  { approved: 'true ' },
  { approved: 0 },
  { approved: 1 },
  { approved: null },
  {},
  { approved: [] },
  { approved: [false] },
  { approved: { x: 1 } },
  { approved: true },
  { decision: 'APPROVE' },
  { decision: ['approve'] },
  { decision: 'approve\u0000' },
  { decision: ' approve' },
  { decision: true },
  { decision: 'reject' },
  [],
  'approve',
  null,
  undefined,
];

describe.each(ENGINE_STORES)('approvals on $name', (store) => {
  it('PPL-2: the ask carries what will be executed and what a person needs to decide', async () => {
    const { agents } = refunds({
      parse: ({ order, cents }) => ({ ok: true, input: { order, cents, currency: 'EUR' } as JsonObject }),
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    expect(ask).toMatchObject({
      runId: id,
      agent: 'support',
      version: '1',
      kind: 'approval',
      status: 'pending',
      tool: 'refund',
      arguments: { order: 'o-1', cents: 500, currency: 'EUR' },
      reason: 'money leaves',
      risk: 'high',
      approverRole: 'finance',
      decision: null,
    });
    expect(ask.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(ask.expiresAt!.getTime() - ask.createdAt.getTime()).toBe(86_400_000);
    const [requested] = await entriesOf(process.store, id, 'interaction.requested');
    expect(requested).toMatchObject({ interactionId: ask.id, digest: ask.digest, key: ask.operationKey });
    await world.end();
  });

  // B045
  it.each(['by an observer', 'by a reader of events elsewhere'])(
    'PPL-1: an ask may be answered the moment its event is seen, however large it and its history are: %s',
    async (how) => {
      const big = 'x'.repeat(1_000_000);
      const { agents, ledger } = refunds({}, [{ calls: [{ name: 'refund', args: { big } }] }, { text: 'done' }]);
      const world = await World.over(store);
      const seen: Promise<{ status: string }>[] = [];
      const answer = (decider: Process, runId: string, interactionId: unknown) =>
        void seen.push(decider.runs.respond(runId, String(interactionId), approve));
      const observer = {
        onEvent: (event: LifecycleEvent) => {
          if (event.type === 'interaction.requested') answer(process, event.runId, event.details.interactionId);
        },
      };
      const isObserved = how === 'by an observer';
      const process: Process = await world.process(agents, {}, isObserved ? { observers: [observer] } : {});
      const reader = await world.office(agents);
      const messages = Array.from({ length: 9 }, (_, n) => ({
        role: n % 2 === 0 ? ('user' as const) : ('assistant' as const),
        content: n < 8 ? big : 'go',
      }));
      const { id } = await process.runs.start({ agent: 'support', messages });
      let after = 0;
      await until(async () => {
        if (isObserved) return seen.length > 0;
        const { events } = await reader.runs.events(id, { after });
        after += events.length;
        for (const { type, data } of events)
          if (type === 'interaction.requested') answer(reader, id, data['interactionId']);
        return seen.length > 0;
      }, 'the event');
      expect(await Promise.all(seen)).toMatchObject([{ status: 'approved' }]);
      await reaches(process, id, 'completed');
      expect(ledger).toEqual([{ big }]);
      await world.end();
    },
  );

  it('PPL-3: the identical decision again is answered with the stored one, before and after it was used', async () => {
    const { agents, ledger } = refunds();
    const world = await World.over(store);
    const office = await world.office(agents);
    const worker = await world.process(agents);
    const { id, ask } = await waiting(worker);
    worker.worker.pause();
    const first = await office.runs.respond(id, ask.id, { ...approve, note: 'fine' });
    expect(first).toMatchObject({ status: 'approved', decision: { decision: 'approve', by: 'ann', note: 'fine' } });
    expect(await office.runs.respond(id, ask.id, { ...approve, note: 'fine' })).toEqual(first);
    worker.worker.resume();
    await reaches(worker, id, 'completed');
    const { sequence } = await rowOf(worker.store, id);
    expect(await office.runs.respond(id, ask.id, { ...approve, note: 'fine' })).toEqual({ ...first, status: 'used' });
    expect(await codeOf(office.runs.respond(id, ask.id, deny))).toBe('ALREADY_DECIDED');
    expect(await codeOf(office.runs.respond(id, ask.id, { ...approve, note: 'other' }))).toBe('ALREADY_DECIDED');
    expect((await rowOf(worker.store, id)).sequence).toBe(sequence);
    expect(ledger).toHaveLength(1);
    await world.end();
  });

  it('PPL-3: a different decision is refused with the one that came first', async () => {
    const { agents } = refunds();
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    await process.runs.respond(id, ask.id, deny);
    await expect(process.runs.respond(id, ask.id, approve)).rejects.toMatchObject({
      code: 'ALREADY_DECIDED',
      details: { status: 'denied', decision: { decision: 'deny', by: 'bob' } },
    });
    await world.end();
  });

  it('PPL-3: a decision after its time is refused, before and after the sweep that ends it', async () => {
    const { agents, model, ledger } = refunds({ asks: () => ({ expiresInMs: 1 }) });
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    await until(() => Date.now() > ask.expiresAt!.getTime(), 'the ask is late');
    expect(await codeOf(process.runs.respond(id, ask.id, approve))).toBe('INTERACTION_EXPIRED');
    await process.recovery.expireInteractions();
    await reaches(process, id, 'completed');
    expect(await codeOf(process.runs.respond(id, ask.id, approve))).toBe('INTERACTION_EXPIRED');
    expect(results(model)).toMatchObject([{ outcome: 'denied', output: 'Denied by system: Nobody decided in time.' }]);
    expect(ledger).toEqual([]);
    expect(await entryTypes(process, id)).toContain('interaction.expired');
    await world.end();
  });

  it('PPL-5: an ask may live for ever', async () => {
    const { agents } = refunds();
    const world = await World.over(store);
    const process = await world.process(agents, { approvalExpiresMs: null });
    const { id, ask } = await waiting(process);
    expect(ask.expiresAt).toBeUndefined();
    await process.recovery.expireInteractions();
    expect((await process.runs.get(id)).status).toBe('waiting');
    await world.end();
  });

  it('PPL-3: an ask is answered only through its own run', async () => {
    const { agents } = refunds();
    const world = await World.over(store);
    const process = await world.process(agents);
    const one = await waiting(process);
    const two = await waiting(process);
    expect(await codeOf(process.runs.respond(one.id, two.ask.id, approve))).toBe('INTERACTION_NOT_FOUND');
    expect(await codeOf(process.runs.respond('no-such-run', two.ask.id, approve))).toBe('RUN_NOT_FOUND');
    expect(await codeOf(process.runs.respond(one.id, 'no-such-ask', approve))).toBe('INTERACTION_NOT_FOUND');
    expect((await process.runs.pendingInteractions()).interactions).toHaveLength(2);
    await world.end();
  });

  it('PPL-3: nothing but the literal words is a decision', async () => {
    const { agents } = refunds();
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    for (const body of NEVER_AN_APPROVAL) {
      const withApprover =
        typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body, by: 'ann' } : body;
      expect([body, await codeOf(process.runs.respond(id, ask.id, withApprover as InteractionResponse))]).toEqual([
        body,
        'INVALID_REQUEST',
      ]);
    }
    const more: unknown[] = [
      { decision: 'approve' },
      { decision: 'approve', by: '' },
      { ...approve, approver: 'eve' },
      { ...approve, note: 7 },
      { ...deny, arguments: {} },
      { ...approve, arguments: [] },
      { ...approve, arguments: 'all' },
      { ...approve, action: 'accept' },
      { action: 'accept', by: 'ann', answers: {} },
      { action: 'decline', by: 'ann' },
    ];
    for (const body of more)
      expect([body, await codeOf(process.runs.respond(id, ask.id, body as InteractionResponse))]).toEqual([
        body,
        'INVALID_REQUEST',
      ]);
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', interactions: [{ status: 'pending' }] });
    await world.end();
  });

  it('PPL-3: edited arguments replace all, are parsed like the call, and the original is kept', async () => {
    const { agents, ledger, model } = refunds({
      parse: ({ order, cents }) =>
        Number.isInteger(Number(cents))
          ? { ok: true, input: { order: order ?? 'none', cents: Number(cents) } }
          : { ok: false, problems: ['cents must be a whole number'] },
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    const edit = (cents: unknown) =>
      process.runs.respond(id, ask.id, { ...approve, arguments: { cents } as JsonObject });
    await expect(edit('many')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
      details: { problems: ['cents must be a whole number'] },
    });
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', interactions: [{ status: 'pending' }] });
    expect(await edit('200')).toMatchObject({
      status: 'approved',
      arguments: { order: 'o-1', cents: 500 },
      decision: { arguments: { order: 'none', cents: 200 } },
    });
    await reaches(process, id, 'completed');
    expect(ledger).toEqual([{ order: 'none', cents: 200 }]);
    const [call] = await entriesOf(process.store, id, 'model.completed');
    expect(call!.message.content[0]).toMatchObject({ arguments: { order: 'o-1', cents: 500 } });
    expect(results(model)).toMatchObject([{ outcome: 'success' }]);
    await world.end();
  });

  it('PPL-3: the rule judges edited arguments again, for the actor of the run', async () => {
    const judged: unknown[] = [];
    const { agents, ledger } = refunds({
      asks: ({ cents }, { actor }) => {
        judged.push({ cents, actor });
        if (cents === 13) throw new Error('unlucky');
        return { approverRole: Number(cents) > 1_000 ? 'board' : 'finance' };
      },
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    const edit = (cents: number) =>
      process.runs.respond(id, ask.id, { ...approve, arguments: { order: 'o-1', cents } });
    expect(await codeOf(edit(5_000))).toBe('INVALID_ARGUMENTS');
    // A rule that fails asks a person, and a person is deciding.
    expect(await edit(13)).toMatchObject({ status: 'approved' });
    await reaches(process, id, 'completed');
    const actor = { id: 'carl', roles: ['user'] };
    expect(judged).toEqual([500, 5_000, 13].map((cents) => ({ cents, actor })));
    expect(ledger).toEqual([{ order: 'o-1', cents: 13 }]);
    await world.end();
  });

  // B038
  it('PPL-1a: the rule is asked once in the life of a call, whatever restarts', async () => {
    let asked = 0;
    const { agents, ledger, model } = refunds({
      asks: () => {
        if (++asked > 1) throw new Error('asked again');
        return {};
      },
    });
    const world = await World.over(store);
    let process = await world.process(agents);
    const { id, ask } = await waiting(process);
    process = await world.restart(agents);
    await process.runs.respond(id, ask.id, approve);
    process = await world.restart(agents);
    await reaches(process, id, 'completed');
    expect([asked, ledger.length, model.requests.length]).toEqual([1, 1, 2]);
    await world.end();
  });

  it('PPL-1a: a rule that throws asks, and a free call is not asked about', async () => {
    const { agents, ledger } = refunds(
      {
        asks: ({ cents }) => {
          if (cents === 1) throw new Error('rule is broken');
          return null;
        },
      },
      [
        {
          calls: [
            { name: 'refund', args: { cents: 1 } },
            { name: 'refund', args: { cents: 2 } },
          ],
        },
        { text: 'done' },
      ],
    );
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    expect(ask).toMatchObject({ arguments: { cents: 1 }, reason: expect.stringContaining('rule failed') });
    expect(ledger).toEqual([{ cents: 2 }]);
    await process.runs.respond(id, ask.id, approve);
    await reaches(process, id, 'completed');
    expect(ledger).toEqual([{ cents: 2 }, { cents: 1 }]);
    await world.end();
  });

  // B055
  it('PPL-1a: neither a rule nor a tool can change what was approved', async () => {
    const { agents, model } = refunds({
      parse: (args) => ({ ok: true, input: { ...args, currency: 'EUR' } }),
      asks: (input) => {
        input.cents = 1_000_000;
        return {};
      },
    });
    const executed: JsonObject[] = [];
    agents.tools[0]!.caller.call = async (input, _context, entry) => {
      await entry.onEnter();
      executed.push({ ...input });
      input.cents = 0;
    };
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    const shown = { order: 'o-1', cents: 500, currency: 'EUR' };
    expect(ask.arguments).toEqual(shown);
    await process.runs.respond(id, ask.id, approve);
    await reaches(process, id, 'completed');
    expect(executed).toEqual([shown]);
    expect(model.requests[1]?.messages.at(-2)).toMatchObject({
      content: [{ arguments: { order: 'o-1', cents: 500 } }],
    });
    await world.end();
  });

  // B044
  it('PPL-4: a decision binds its own call: the next attempt of the model asks again', async () => {
    const { agents, ledger, model } = refunds({}, [
      { calls: [{ name: 'refund', args: { cents: 500 } }] },
      { calls: [{ name: 'refund', args: { cents: 400 } }] },
      { calls: [{ name: 'refund', args: { cents: 400 } }] },
      { text: 'done' },
    ]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask: first } = await waiting(process);
    await process.runs.respond(id, first.id, deny);
    let second = first;
    await until(async () => {
      [second] = (await process.runs.pendingInteractions({ runId: id })).interactions as [typeof first];
      return second !== undefined;
    }, 'the second ask');
    expect(await codeOf(process.runs.respond(id, first.id, approve))).toBe('ALREADY_DECIDED');
    expect((await process.runs.get(id)).interactions).toMatchObject([{ id: second.id, status: 'pending' }]);
    await process.runs.respond(id, second.id, approve);
    let third = second;
    await until(async () => {
      [third] = (await process.runs.pendingInteractions({ runId: id })).interactions as [typeof first];
      return third !== undefined && third.id !== second.id;
    }, 'the same call asks again');
    expect(new Set([first.digest, second.digest, third.digest]).size).toBe(3);
    await process.runs.respond(id, third.id, deny);
    await reaches(process, id, 'completed');
    expect(ledger).toEqual([{ cents: 400 }]);
    expect(results(model, 1)).toMatchObject([{ outcome: 'denied' }]);
    await world.end();
  });

  // B054
  it('PPL-4: a process that dies while its run waits changes nothing about the call that was approved', async () => {
    const { agents, ledger, model } = refunds();
    const world = await World.over(store);
    const doomed = await world.process(agents);
    const { id, ask } = await waiting(doomed);
    world.kill(doomed);
    const next = await world.another(agents);
    expect((await next.runs.pendingInteractions({ runId: id })).interactions).toEqual([ask]);
    await next.runs.respond(id, ask.id, approve);
    await reaches(next, id, 'completed');
    expect(ledger).toEqual([{ order: 'o-1', cents: 500 }]);
    expect(model.requests).toHaveLength(2);
    await world.end();
  });

  it('PPL-6: resume names the asks that are open, and nobody goes on without them', async () => {
    const { agents, ledger } = refunds();
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id, ask } = await waiting(process);
    await expect(process.runs.resume(id)).rejects.toMatchObject({
      code: 'OPEN_INTERACTIONS',
      details: { interactions: [ask.id] },
    });
    expect(ledger).toEqual([]);
    await world.end();
  });

  it('PPL-6: with manual resume a decided run waits for a person to go on', async () => {
    const { agents, ledger } = refunds();
    const world = await World.over(store);
    const process = await world.process(agents, { resumeAfterAnswers: 'manual' });
    const { id, ask } = await waiting(process);
    await process.runs.respond(id, ask.id, approve);
    await process.recovery.reconcile();
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', interactions: [] });
    await process.runs.resume(id, { by: 'ann' });
    await reaches(process, id, 'completed');
    expect(ledger).toHaveLength(1);
    await world.end();
  });

  it('PPL-6: a decision that nobody resumed is swept', async () => {
    const { agents, ledger } = refunds();
    const world = await World.over(store);
    let process = await world.process(agents, { resumeAfterAnswers: 'manual' });
    const { id, ask } = await waiting(process);
    await process.runs.respond(id, ask.id, approve);
    process = await world.restart(agents);
    expect((await process.runs.get(id)).status).toBe('waiting');
    await process.recovery.reconcile();
    await reaches(process, id, 'completed');
    expect(ledger).toHaveLength(1);
    await world.end();
  });

  // B046, B049
  it('PPL-6: one of two decisions moves nothing, also with nobody there to execute the run', async () => {
    const { agents, ledger, model } = refunds({}, [
      {
        calls: [
          { name: 'refund', args: { cents: 1 } },
          { name: 'refund', args: { cents: 2 } },
        ],
      },
      { text: 'done' },
    ]);
    const world = await World.over(store);
    let process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, id, 'waiting');
    const asks = await asksOf(process, id, 2);
    process = await world.restart(agents, { worker: false });
    await process.runs.respond(id, asks[1]!.id, approve);
    expect(await process.runs.get(id)).toMatchObject({
      status: 'waiting',
      waitingFor: ['approval'],
      interactions: [{ id: asks[0]!.id }],
    });
    await process.runs.respond(id, asks[0]!.id, approve);
    expect(await process.runs.get(id)).toMatchObject({ status: 'pending', interactions: [] });
    expect([ledger.length, model.requests.length]).toEqual([0, 1]);
    process = await world.restart(agents);
    await reaches(process, id, 'completed');
    expect(ledger).toEqual([{ cents: 1 }, { cents: 2 }]);
    expect(await entriesOf(process.store, id, 'run.resumed')).toMatchObject([{ cause: 'answered', by: 'ann' }]);
    await world.end();
  });

  it('PPL-9: the inbox is found by session, agent, run and role, page by page, after a restart', async () => {
    const { agents } = refunds({ asks: ({ cents }) => ({ approverRole: cents === 500 ? 'finance' : 'board' }) });
    const { agents: others } = refunds({}, [{ calls: [{ name: 'refund', args: { cents: 900 } }] }, { text: 'x' }]);
    const world = await World.over(store);
    const both = [agents, { ...others, name: 'sales' }];
    let process = await world.process(both);
    for (let n = 0; n < 3; n++) {
      const { id } = await process.runs.start({ agent: 'support', prompt: 'go', sessionId: `s-${n}` });
      await reaches(process, id, 'waiting');
    }
    const { id: sale } = await process.runs.start({ agent: 'sales', prompt: 'go' });
    await reaches(process, sale, 'waiting');
    process = await world.restart(both);
    const found = async (options: object) =>
      (await process.runs.pendingInteractions(options)).interactions.map(({ agent: name }) => name);
    expect(await found({})).toHaveLength(4);
    expect(await found({ agent: 'sales' })).toEqual(['sales']);
    expect(await found({ sessionId: 's-1' })).toEqual(['support']);
    expect(await found({ runId: sale })).toEqual(['sales']);
    expect(await found({ approverRole: 'finance' })).toHaveLength(4);
    expect(await found({ approverRole: 'board' })).toEqual([]);
    const first = await process.runs.pendingInteractions({ limit: 3 });
    const second = await process.runs.pendingInteractions({ limit: 3, after: first.nextCursor! });
    expect([...first.interactions, ...second.interactions].map(({ arguments: args }) => args)).toEqual([
      { order: 'o-1', cents: 500 },
      { order: 'o-1', cents: 500 },
      { order: 'o-1', cents: 500 },
      { cents: 900 },
    ]);
    expect(await codeOf(process.runs.pendingInteractions({ status: 'open' } as object))).toBe('INVALID_REQUEST');
    await world.end();
  });

  it('PPL-5: an ask that expires while a sibling is at work counts as a refusal when the sibling is done', async () => {
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    const { agents, model, ledger } = refunds({ asks: () => ({ expiresInMs: 1 }) }, [
      { calls: [{ name: 'refund' }, { name: 'slow' }] },
      { text: 'done' },
    ]);
    const slow = tool('slow', () => held.then(() => 'slow is done'));
    const world = await World.over(store);
    const process = await world.process({ ...agents, tools: [...agents.tools, slow] });
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await asksOf(process, id, 1);
    await until(async () => {
      await process.recovery.expireInteractions();
      return (await process.runs.get(id)).interactions.length === 0;
    }, 'the ask is expired');
    expect((await process.runs.get(id)).status).toBe('running');
    release();
    await reaches(process, id, 'completed');
    expect(results(model).map(({ output }) => output)).toEqual([
      'Denied by system: Nobody decided in time.',
      'slow is done',
    ]);
    expect(ledger).toEqual([]);
    await world.end();
  });
});
