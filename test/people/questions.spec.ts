import { describe, expect, it } from '@jest/globals';
import type { InteractionResponse } from '../../lib/contracts/run-requests.js';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ToolMessage } from '../../lib/contracts/message.js';
import type { ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { ENGINE_STORES } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, codeOf, deny, type Process, reaches, World } from './world.js';

const TAKEOVER = { allowRunningTakeover: true, confirmation: { by: 'ops', reason: 'its machine is gone' } };

type Method = (input: JsonObject, context: ToolContext) => unknown;

/** An agent whose only tool does what the method says; the model then says done. */
function doing(method: Method, options: ToolOptions = { recovery: 'manual' }, calls = 1) {
  const model = scriptedModel(
    [{ calls: Array.from({ length: calls }, (_, n) => ({ name: 'work', args: { n } })) }, { text: 'done' }],
    { place: 'transcript' },
  );
  return {
    model,
    agents: agent(model, [tool('work', method, options)]),
    results: () => (model.requests[1]?.messages.at(-1) as ToolMessage).content,
  };
}

const accept = (answers: JsonObject): InteractionResponse => ({ action: 'accept', by: 'ann', answers });

async function started(process: Process): Promise<string> {
  return (await process.runs.start({ agent: 'support', prompt: 'go' })).id;
}

/** The one open ask of a run that waits. */
async function waitingAsk(process: Process, id: string) {
  await reaches(process, id, 'waiting');
  const [ask] = await asksOf(process, id, 1);
  return ask!;
}

describe.each(ENGINE_STORES)('asks inside a method on $name', (store) => {
  // B052
  it('PPL-8a: a second question may depend on the first; each is asked once, with a restart before each answer', async () => {
    const attempts: number[] = [];
    const operations = new Set<string>();
    const { agents, results } = doing(async (_input, context) => {
      attempts.push(context.attempt);
      operations.add(context.operationId);
      const { city } = await context.ask({ id: 'city', text: 'Which city?' });
      const { street } = await context.ask({ id: 'street', text: `Which street in ${String(city)}?` });
      return { city, street };
    });
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await started(process);
    const first = await waitingAsk(process, id);
    expect(await process.runs.get(id)).toMatchObject({ waitingFor: ['question'] });
    process = await world.restart(agents);
    await process.runs.respond(id, first.id, accept({ city: 'Bonn' }));
    await until(async () => {
      const [open] = (await process.runs.pendingInteractions({ runId: id })).interactions;
      return open !== undefined && open.id !== first.id;
    }, 'the second question');
    const second = await waitingAsk(process, id);
    expect(second.questions).toEqual([{ id: 'street', text: 'Which street in Bonn?' }]);
    process = await world.restart(agents);
    await process.runs.respond(id, second.id, accept({ street: 'Hauptstraße' }));
    await reaches(process, id, 'completed');
    expect(results()).toMatchObject([{ outcome: 'success', output: { city: 'Bonn', street: 'Hauptstraße' } }]);
    expect(attempts).toEqual([1, 2, 3]);
    expect(operations.size).toBe(1);
    expect(await entriesOf(process.store, id, 'interaction.requested')).toHaveLength(2);
    await world.end();
  });

  it('PPL-8: each question has one answer that fits, and a wrong one leaves the ask open', async () => {
    const { agents, results } = doing((_input, context) =>
      context.ask([
        { id: 'size', text: 'Size?', choices: ['s', 'm'] },
        { id: 'colour', text: 'Colour?', choices: ['red'], allowCustom: true },
        { id: 'count', text: 'How many?', schema: { type: 'integer', minimum: 1 } },
        { id: 'why', text: 'Why?' },
      ]),
    );
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    const ask = await waitingAsk(process, id);
    const good: JsonObject = { size: 's', colour: 'green', count: 2, why: 'because' };
    const wrong: JsonObject[] = [
      {},
      { ...good, size: 'xl' },
      { ...good, colour: '' },
      { ...good, count: 0 },
      { ...good, count: '2' },
      { ...good, why: 7 },
      { ...good, more: 'x' },
      { size: 's', colour: 'green', count: 2 },
    ];
    for (const answers of wrong)
      expect([answers, await codeOf(process.runs.respond(id, ask.id, accept(answers)))]).toEqual([
        answers,
        'INVALID_ANSWER',
      ]);
    const unfit: unknown[] = [
      approve,
      { action: 'accept', by: 'ann' },
      { action: 'accept', answers: good },
      { action: 'ACCEPT', by: 'ann', answers: good },
      { action: 'decline', by: 'ann', answers: good },
    ];
    for (const body of unfit)
      expect([body, await codeOf(process.runs.respond(id, ask.id, body as InteractionResponse))]).toEqual([
        body,
        'INVALID_REQUEST',
      ]);
    expect((await process.runs.get(id)).interactions).toMatchObject([{ status: 'pending' }]);
    expect(await process.runs.respond(id, ask.id, accept(good))).toMatchObject({ status: 'answered' });
    await reaches(process, id, 'completed');
    expect(results()).toMatchObject([{ output: good }]);
    expect(await codeOf(process.runs.respond(id, ask.id, accept({ ...good, size: 'm' })))).toBe('ALREADY_DECIDED');
    expect(await process.runs.respond(id, ask.id, accept(good))).toMatchObject({ status: 'answered' });
    await world.end();
  });

  it.each([
    ['decline', 'decline by ann: not my business'],
    ['cancel', 'cancel by ann: not my business'],
    ['expire', 'cancel by system: Nobody decided in time.'],
  ] as const)(
    'PPL-8a: a question that is not answered is thrown into the method as a typed error: %s',
    async (way, words) => {
      const met: unknown[] = [];
      const { agents, results } = doing(async (_input, context) => {
        try {
          return await context.ask({ id: 'q', text: 'Well?' });
        } catch (error) {
          if (AgentRunsError.is(error, 'QUESTION_NOT_ANSWERED')) met.push(error.message, error.details.by);
          throw error;
        }
      });
      const world = await World.over(store);
      const process = await world.process(agents, { approvalExpiresMs: way === 'expire' ? 1 : 60_000 });
      const id = await started(process);
      const ask = await waitingAsk(process, id);
      if (way === 'expire')
        await until(async () => {
          await process.recovery.expireInteractions();
          return (await process.runs.get(id)).status !== 'waiting';
        }, 'the question is expired');
      else await process.runs.respond(id, ask.id, { action: way, by: 'ann', note: 'not my business' });
      await reaches(process, id, 'completed');
      const text = `The question was not answered: ${words}.`;
      expect(met).toEqual([text, way === 'expire' ? 'system' : 'ann']);
      expect(results()).toMatchObject([{ outcome: 'error', output: text }]);
      await world.end();
    },
  );

  it('PPL-8a: another question under a recorded ordinal is drift, and the call goes on once the old code is back', async () => {
    const asking = (text: string) => (_input: JsonObject, context: ToolContext) => context.ask({ id: 'q', text });
    const before = doing(asking('Old words?'));
    const after = { ...before.agents, tools: [tool('work', asking('New words?'), { recovery: 'manual' })] };
    const world = await World.over(store);
    let process = await world.process(before.agents);
    const id = await started(process);
    const ask = await waitingAsk(process, id);
    process = await world.restart(after);
    await process.runs.respond(id, ask.id, accept({ q: 'yes' }));
    const run = await reaches(process, id, 'needs_attention');
    expect(run.attention).toMatchObject({ reason: 'input_drift', operationKey: 'r1.m1.t0' });
    process = await world.restart(before.agents);
    await process.runs.resolveTool(id, { key: 'r1.m1.t0', notHappened: true, by: 'ops' });
    await reaches(process, id, 'completed');
    expect(before.results()).toMatchObject([{ outcome: 'success', output: { q: 'yes' } }]);
    await world.end();
  });

  it('PPL-8a: an approval inside a method shows its own arguments, and gives back who approved and what was edited', async () => {
    const { agents, results } = doing(
      async ({ n }, context) => {
        const given = await context.requestApproval({
          reason: 'large sum',
          risk: 'high',
          approverRole: 'finance',
          arguments: { cents: 5_000, n: n as number },
        });
        return given;
      },
      // The method's ask is not the tool's input: its schema has no say in it.
      {
        recovery: 'manual',
        parse: (args) => ('n' in args ? { ok: true, input: args } : { ok: false, problems: ['no n'] }),
      },
    );
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    const ask = await waitingAsk(process, id);
    expect(await process.runs.get(id)).toMatchObject({ waitingFor: ['approval'] });
    expect(ask).toMatchObject({
      kind: 'approval',
      reason: 'large sum',
      risk: 'high',
      approverRole: 'finance',
      arguments: { cents: 5_000, n: 0 },
    });
    await process.runs.respond(id, ask.id, { ...approve, note: 'less', arguments: { cents: 100 } });
    await reaches(process, id, 'completed');
    // The model is told that a person changed something, too.
    expect(results()).toMatchObject([{ output: { result: { by: 'ann', note: 'less', arguments: { cents: 100 } } } }]);
    await world.end();
  });

  it('PPL-8a: a denied approval is thrown into the method, which may do without', async () => {
    const { agents, results } = doing(async (_input, context) => {
      try {
        await context.requestApproval({ reason: 'large sum' });
        return 'paid';
      } catch (error) {
        if (AgentRunsError.is(error, 'APPROVAL_DENIED')) return `not paid. ${error.message}`;
        throw error;
      }
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await process.runs.respond(id, (await waitingAsk(process, id)).id, deny);
    await reaches(process, id, 'completed');
    expect(results()).toMatchObject([
      { outcome: 'success', output: 'not paid. Not approved: denied by bob: too much.' },
    ]);
    await world.end();
  });

  it('PPL-6: a run waits for the approvals of all its methods', async () => {
    const { agents, results } = doing(
      async ({ n }, context) => (await context.requestApproval({ reason: `part ${String(n)}` })).by,
      { recovery: 'manual' },
      2,
    );
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await reaches(process, id, 'waiting');
    const [one, two] = await asksOf(process, id, 2);
    await process.runs.respond(id, one!.id, approve);
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', waitingFor: ['approval'], attempt: 1 });
    await process.recovery.reconcile();
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', attempt: 1 });
    await process.runs.respond(id, two!.id, { ...approve, by: 'eve' });
    await reaches(process, id, 'completed');
    expect(results().map(({ output }) => output)).toEqual(['ann', 'eve']);
    await world.end();
  });

  // B033
  it('PPL-8a: what was done in a step before a question is not done again, whatever restarts or dies', async () => {
    const ledger: string[] = [];
    const { agents, results } = doing(async (_input, context) => {
      const order = await context.step('before', () => {
        ledger.push('before');
        return { number: ledger.length, at: new Date(0) };
      });
      const { ok } = await context.ask({ id: 'ok', text: `Order ${String(order.number)}?` });
      await context.step('after', () => void ledger.push(`after ${String(ok)}`));
      return order;
    });
    const world = await World.over(store);
    const doomed = await world.process(agents);
    const id = await started(doomed);
    const ask = await waitingAsk(doomed, id);
    expect(await doomed.runs.get(id)).toMatchObject({ status: 'waiting' });
    world.kill(doomed);
    await world.another(agents);
    const process = await world.restart(agents);
    expect((await process.runs.get(id)).status).toBe('waiting');
    await process.runs.respond(id, ask.id, accept({ ok: 'yes' }));
    await reaches(process, id, 'completed');
    expect(ledger).toEqual(['before', 'after yes']);
    expect(results()).toMatchObject([{ output: { number: 1, at: '1970-01-01T00:00:00.000Z' } }]);
    await world.end();
  });

  it('PPL-8a: a step that was cut is repeated where its policy allows it, and else a person decides', async () => {
    for (const recovery of ['idempotent', 'safe', 'manual'] as const) {
      const ledger: string[] = [];
      const hold = signal();
      const entered = signal();
      const method: Method = async (_input, context) => {
        await context.step('done', () => void ledger.push('done'));
        await context.step(
          'cut',
          async () => {
            ledger.push('cut');
            entered.resolve();
            await hold.promise;
          },
          { recovery },
        );
        return 'finished';
      };
      // The call itself may run again; its steps decide for themselves.
      const { agents, results } = doing(method, { recovery: 'idempotent' });
      const world = await World.over(store);
      const doomed = await world.process(agents);
      const id = await started(doomed);
      await entered.promise;
      world.kill(doomed);
      hold.resolve();
      const process = await world.another(agents);
      await process.runs.resume(id, TAKEOVER);
      if (recovery === 'manual') {
        const run = await reaches(process, id, 'needs_attention');
        expect(run.attention).toMatchObject({
          reason: 'uncertain_outcome',
          detail: expect.stringContaining('its step cut was interrupted, and may not be repeated (manual)'),
        });
        expect(ledger).toEqual(['done', 'cut']);
        // It did not happen: so the step is done after all, and what came before it stands.
        await process.runs.resolveTool(id, { key: 'r1.m1.t0', notHappened: true, by: 'ops' });
      }
      await reaches(process, id, 'completed');
      expect(ledger).toEqual(['done', 'cut', 'cut']);
      expect(results()).toMatchObject([{ outcome: 'success', output: 'finished' }]);
      await world.end();
    }
  });

  it('PPL-8a: a step keeps the stricter of the policy it began with and the one it has now', async () => {
    for (const [then, now] of [
      ['manual', 'safe'],
      ['safe', 'manual'],
    ] as const) {
      const hold = signal();
      const entered = signal();
      const method =
        (recovery: 'manual' | 'safe'): Method =>
        (_input, context) =>
          context.step('cut', () => (entered.resolve(), hold.promise), { recovery });
      const { agents } = doing(method(then), { recovery: 'safe' });
      const world = await World.over(store);
      const doomed = await world.process(agents);
      const id = await started(doomed);
      await entered.promise;
      world.kill(doomed);
      const process = await world.another({ ...agents, tools: [tool('work', method(now), { recovery: 'safe' })] });
      await process.runs.resume(id, TAKEOVER);
      const run = await reaches(process, id, 'needs_attention');
      expect(run.attention?.detail).toContain('may not be repeated (manual)');
      hold.resolve();
      await process.runs.cancel(id);
      await world.end();
    }
  });

  it('PPL-8a: a failed step fails the same way again, and a step gives everybody a value of their own', async () => {
    const seen: unknown[] = [];
    let works = 0;
    const { agents, results } = doing(async (_input, context) => {
      const list = await context.step('list', () => [1]);
      seen.push(structuredClone(list));
      list.push(2);
      const failed = await context
        .step('bad', () => {
          works++;
          throw Object.assign(new Error('no stock'), { code: 'E_STOCK' });
        })
        .then(
          () => 'fine',
          (error: Error & { code: string }) => `${error.code} ${error.message}`,
        );
      const { ok } = await context.ask({ id: 'ok', text: 'Go on?' });
      return `${failed} ${String(ok)}`;
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await process.runs.respond(id, (await waitingAsk(process, id)).id, accept({ ok: 'yes' }));
    await reaches(process, id, 'completed');
    expect(results()).toMatchObject([{ outcome: 'success', output: 'E_STOCK no stock yes' }]);
    expect([works, seen]).toEqual([1, [[1], [1]]]);
    await world.end();
  });

  it('JRN-9: a step whose result cannot be recorded needs attention; a safe one is an error of its own', async () => {
    for (const recovery of ['manual', 'safe'] as const) {
      const { agents, results } = doing(
        (_input, context) => context.step('odd', () => new Map(), { recovery }).catch((error: Error) => error.message),
        { recovery },
      );
      const world = await World.over(store);
      const process = await world.process(agents);
      const id = await started(process);
      const run = await reaches(process, id, 'needs_attention', 'completed');
      if (recovery === 'manual') {
        expect(run.attention).toMatchObject({ reason: 'unserialisable_result' });
        await process.runs.resolveTool(id, { key: 'r1.m1.t0', output: 'ok', by: 'ops' });
        await reaches(process, id, 'completed');
      } else
        expect(results()).toMatchObject([
          { output: expect.stringContaining('its step odd returned what cannot be recorded') },
        ]);
      await world.end();
    }
  });

  it('PPL-8a: a method that swallows its leaving is asked for all the same, and what it did then counts for nothing', async () => {
    const { agents, results } = doing(async (_input, context) => {
      try {
        return await context.ask({ id: 'q', text: 'Well?' });
      } catch {
        await context.step('never', () => 'done').catch(() => undefined);
        return 'I do as I like';
      }
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await process.runs.respond(id, (await waitingAsk(process, id)).id, accept({ q: 'yes' }));
    await reaches(process, id, 'completed');
    expect(results()).toMatchObject([{ output: { q: 'yes' } }]);
    expect(await entriesOf(process.store, id, 'tool.step_started')).toEqual([]);
    await world.end();
  });

  it('PPL-8a: two asks at once are asked one after the other, and a step beside an ask is finished first', async () => {
    const order: string[] = [];
    const { agents, results } = doing(async (_input, context) => {
      const [slow, a, b] = await Promise.all([
        context.step('slow', async () => {
          await new Promise((resolve) => setImmediate(resolve));
          order.push('slow');
          return 'slow';
        }),
        context.ask({ id: 'a', text: 'A?' }),
        context.ask({ id: 'b', text: 'B?' }),
      ]);
      return { slow, ...a, ...b };
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    const first = await waitingAsk(process, id);
    expect(first.questions).toMatchObject([{ id: 'a' }]);
    await process.runs.respond(id, first.id, accept({ a: '1' }));
    await until(async () => {
      const [open] = (await process.runs.pendingInteractions({ runId: id })).interactions;
      return open !== undefined && open.id !== first.id;
    }, 'the second question');
    await process.runs.respond(id, (await waitingAsk(process, id)).id, accept({ b: '2' }));
    await reaches(process, id, 'completed');
    expect(results()).toMatchObject([{ output: { slow: 'slow', a: '1', b: '2' } }]);
    expect(order).toEqual(['slow']);
    await world.end();
  });

  it('PPL-8a: what a method asks wrongly is told to its developer, and nobody is asked', async () => {
    const mistakes: Method[] = [
      (_input, context) => context.ask([]),
      (_input, context) => context.ask({ id: 'not an id', text: 'x' }),
      (_input, context) => context.ask({ id: 'a', text: ' ' }),
      (_input, context) =>
        context.ask([
          { id: 'a', text: 'x' },
          { id: 'a', text: 'y' },
        ]),
      (_input, context) => context.ask({ id: 'a', text: 'x', choices: [] }),
      (_input, context) => context.ask({ id: 'a', text: 'x', schema: { type: 'no such type' } }),
      (_input, context) => context.ask({ id: 'a', text: 'x', choices: ['b'], schema: {} }),
      (_input, context) => context.ask(undefined as never),
      (_input, context) => context.requestApproval({} as never),
      (_input, context) => context.requestApproval({ reason: 'x', expiresInMs: -1 }),
      (_input, context) => context.requestApproval({ reason: 'x', arguments: [] as never }),
      (_input, context) => context.step('no key!', () => 1),
      (_input, context) => Promise.all([context.step('a', () => 1), context.step('a', () => 2)]),
    ];
    const { agents, results } = doing(
      ({ n }, context) => mistakes[n as number]!({}, context),
      { recovery: 'safe' },
      mistakes.length,
    );
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await reaches(process, id, 'completed');
    for (const result of results())
      expect(result).toMatchObject({
        outcome: 'error',
        output: expect.stringMatching(/^context\.(ask|requestApproval|step)/),
      });
    expect(await entriesOf(process.store, id, 'interaction.requested')).toEqual([]);
    await world.end();
  });

  it('PPL-8a: a method that waits for an answer holds no slot, and its call is not uncertain', async () => {
    const { agents } = doing((_input, context) => context.ask({ id: 'q', text: 'Well?' }));
    const world = await World.over(store);
    const process = await world.process(agents, { maxConcurrentRuns: 1 });
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      ids.push(await started(process));
      await reaches(process, ids[n]!, 'waiting');
    }
    await until(() => process.worker.status().activeRuns === 0, 'all slots are free');
    const { operations } = await process.runs.snapshot(ids[0]!);
    expect(operations.at(-1)).toMatchObject({ key: 'r1.m1.t0', status: 'waiting' });
    await world.end();
  });

  it('PPL-8a: a call that is under way when its process shuts down may still make its steps and its asks', async () => {
    const hold = signal();
    const entered = signal();
    const ledger: string[] = [];
    const { agents, results } = doing(async (_input, context) => {
      entered.resolve();
      await hold.promise;
      await context.step('paid', () => void ledger.push('paid'));
      return context.ask({ id: 'q', text: 'Well?' });
    });
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await started(process);
    await entered.promise;
    const drained = process.worker.drain();
    hold.resolve();
    await drained;
    process = await world.restart(agents);
    await process.runs.respond(id, (await waitingAsk(process, id)).id, accept({ q: 'yes' }));
    await reaches(process, id, 'completed');
    expect(ledger).toEqual(['paid']);
    expect(results()).toMatchObject([{ output: { q: 'yes' } }]);
    await world.end();
  });

  it('MOD-8: a method that outlives its time-out can neither ask nor make steps any more', async () => {
    const hold = signal();
    const late = signal<unknown[]>();
    const { agents } = doing(
      async (_input, context) => {
        await hold.promise;
        const words = (work: Promise<unknown>) => work.then(String, (error: Error) => error.message);
        late.resolve([
          await words(context.step('late', () => 'done')),
          await words(context.ask({ id: 'q', text: 'Well?' })),
        ]);
      },
      { recovery: 'inform', timeoutMs: 5 },
    );
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await reaches(process, id, 'completed');
    hold.resolve();
    const ended = 'The tool call has ended: its context can no longer be used.';
    expect(await late.promise).toEqual([ended, ended]);
    await world.end();
  });

  if (store.transactions)
    it('JRN-5b: a transactional tool that asks or makes steps is refused clearly', async () => {
      const { agents, results } = doing(
        ({ n }, context) => (n === 0 ? context.ask({ id: 'q', text: 'Well?' }) : context.step('s', () => 1)),
        { recovery: 'transactional' },
        2,
      );
      const world = await World.over(store);
      const process = await world.process(agents);
      const id = await started(process);
      await reaches(process, id, 'completed');
      for (const result of results())
        expect(result).toMatchObject({
          outcome: 'error',
          output: 'a transactional tool can neither ask nor make steps; use another recovery policy',
        });
      await world.end();
    });
});
