import { describe, expect, it } from '@jest/globals';
import type { BudgetDecision } from '../../lib/contracts/run-requests.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { agent, entryTypes, tool } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, codeOf, type Process, reaches, World } from './world.js';

const CALL: Scripted = { calls: [{ name: 'free' }] };
const DONE: Scripted = { text: 'done' };

/** Each reply costs 15 tokens. */
function scene(script: Scripted[] = [CALL, CALL, DONE]) {
  const ran: string[] = [];
  const model = scriptedModel(script, { place: 'transcript' });
  const does = (name: string) => () => {
    ran.push(name);
    return name;
  };
  const tools = [tool('free', does('free')), tool('gated', does('gated'), { recovery: 'manual', asks: () => ({}) })];
  return { ran, model, agents: agent(model, tools) };
}

async function startWith(process: Process, maxTotalTokens: number): Promise<string> {
  return (await process.runs.start({ agent: 'support', prompt: 'go', budget: { maxTotalTokens } })).id;
}

describe.each(ENGINE_STORES)('the budget of a run on $name', (store) => {
  it('BUD-1: with nothing left the tools a reply asks for are not run', async () => {
    const { agents, ran, model } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await startWith(process, 15);
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['budget'], usage: { totalTokens: 15 } });
    expect([ran.length, model.requests.length]).toEqual([0, 1]);
    expect(await entriesOf(process.store, id, 'budget.exhausted')).toMatchObject([
      { maxTotalTokens: 15, consumed: 15 },
    ]);
    expect(await process.runs.budgetStatus(id)).toEqual({ maxTotalTokens: 15, consumed: 15, remaining: 0, grants: [] });
    await world.end();
  });

  it('BUD-1: with nothing left no further request is made', async () => {
    const { agents, model } = scene([{ calls: [{ name: 'no_such_tool' }] }, DONE]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await startWith(process, 10);
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['budget'] });
    expect(model.requests).toHaveLength(1);
    expect(await process.runs.budgetStatus(id)).toMatchObject({ consumed: 15, remaining: 0 });
    await world.end();
  });

  it('BUD-1: below the limit it goes on, and a final answer may overshoot', async () => {
    const { agents, ran } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await startWith(process, 31);
    expect(await reaches(process, id, 'completed', 'waiting')).toMatchObject({
      status: 'completed',
      usage: { totalTokens: 45 },
    });
    expect(ran).toEqual(['free', 'free']);
    expect(await process.runs.budgetStatus(id)).toMatchObject({ maxTotalTokens: 31, consumed: 45, remaining: 0 });
    await world.end();
  });

  it('BUD-2: a limit given on resume holds at once, also for a run that only waits for a worker', async () => {
    const { agents, model } = scene();
    const world = await World.over(store);
    const office = await world.office(agents);
    const id = await startWith(office, 1_000);
    expect(await office.runs.resume(id, { budget: { maxTotalTokens: 15 }, by: 'ann' })).toMatchObject({
      status: 'pending',
      budget: { maxTotalTokens: 15 },
    });
    const worker = await world.another(agents);
    expect(await reaches(worker, id, 'waiting')).toMatchObject({ waitingFor: ['budget'] });
    expect(model.requests).toHaveLength(1);
    expect(await entriesOf(worker.store, id, 'budget.limit_replaced')).toMatchObject([
      { maxTotalTokens: 15, consumed: 0, by: 'ann' },
    ]);
    await world.end();
  });

  it('BUD-2: a limit given on resume replaces the stored one, and one that is too small lets nothing happen', async () => {
    const { agents, ran, model } = scene();
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await startWith(process, 15);
    await reaches(process, id, 'waiting');
    for (const maxTotalTokens of [5, 15]) {
      expect(await process.runs.resume(id, { budget: { maxTotalTokens }, by: 'ann' })).toMatchObject({
        status: 'waiting',
        waitingFor: ['budget'],
        budget: { maxTotalTokens },
        attempt: 1,
      });
      process = await world.restart(agents);
      expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', budget: { maxTotalTokens } });
    }
    // Without one the stored limit stands.
    expect(await process.runs.resume(id)).toMatchObject({
      status: 'waiting',
      budget: { maxTotalTokens: 15 },
      attempt: 1,
    });
    expect([ran.length, model.requests.length]).toEqual([0, 1]);
    await process.runs.resume(id, { budget: { maxTotalTokens: 1_000 } });
    await reaches(process, id, 'completed');
    expect(await entriesOf(process.store, id, 'budget.limit_replaced')).toMatchObject([
      { maxTotalTokens: 5, consumed: 15, by: 'ann' },
      { maxTotalTokens: 15, consumed: 15, by: 'ann' },
      { maxTotalTokens: 1_000, consumed: 15 },
    ]);
    for (const maxTotalTokens of [0, -1, 1.5, Number.NaN, '100'])
      expect(await codeOf(process.runs.resume(id, { budget: { maxTotalTokens: maxTotalTokens as number } }))).toBe(
        'INVALID_REQUEST',
      );
    await world.end();
  });

  it('BUD-2: a grant adds what is missing, or what is said, and is recorded with who gave it', async () => {
    const { agents, ran } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const office = await world.office(agents);
    const id = await startWith(process, 10);
    await reaches(process, id, 'waiting');
    expect(await office.runs.grantBudget(id, 3, { by: 'ann' })).toMatchObject({
      status: 'waiting',
      budget: { maxTotalTokens: 13 },
    });
    await office.runs.grantBudget(id, undefined, { by: 'ann', note: 'last time' });
    // 16 is enough for the tool and one more reply, which uses it up.
    const again = await reaches(process, id, 'waiting');
    expect(again).toMatchObject({ budget: { maxTotalTokens: 16 }, usage: { totalTokens: 30 }, attempt: 2 });
    expect(ran).toEqual(['free']);
    await office.runs.grantBudget(id, 100, { by: 'bob' });
    await reaches(process, id, 'completed');
    expect((await office.runs.budgetStatus(id)).grants).toEqual([
      { amount: 3, by: 'ann', at: expect.any(Date) },
      { amount: 3, by: 'ann', note: 'last time', at: expect.any(Date) },
      { amount: 100, by: 'bob', at: expect.any(Date) },
    ]);
    expect(await entriesOf(process.store, id, 'run.resumed')).toMatchObject([
      { cause: 'budget', by: 'ann' },
      { cause: 'budget', by: 'bob' },
    ]);
    await world.end();
  });

  it('BUD-2: a denial ends the run and says who denied', async () => {
    const { agents, ran, model } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await startWith(process, 15);
    await reaches(process, id, 'waiting');
    expect(await process.runs.denyBudget(id, { by: 'bob', note: 'enough' })).toMatchObject({
      status: 'failed',
      error: { code: 'BUDGET_DENIED', message: 'No more tokens were granted by bob: enough.' },
    });
    expect((await entryTypes(process, id)).slice(-2)).toEqual(['budget.denied', 'run.failed']);
    expect([ran.length, model.requests.length]).toEqual([0, 1]);
    expect(await codeOf(process.runs.grantBudget(id, 5, { by: 'ann' }))).toBe('ILLEGAL_TRANSITION');
    await world.end();
  });

  it('BUD-2: only a run that waits for budget can be granted or denied some', async () => {
    const { agents } = scene([{ calls: [{ name: 'gated' }] }, DONE]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await startWith(process, 1_000);
    await reaches(process, id, 'waiting');
    expect(await codeOf(process.runs.grantBudget(id, 5, { by: 'ann' }))).toBe('ILLEGAL_TRANSITION');
    expect(await codeOf(process.runs.denyBudget(id, { by: 'ann' }))).toBe('ILLEGAL_TRANSITION');
    expect(await codeOf(process.runs.grantBudget('no-such-run', 5, { by: 'ann' }))).toBe('RUN_NOT_FOUND');
    for (const amount of [0, -5, 1.5, Number.NaN, '5'])
      expect(await codeOf(process.runs.grantBudget(id, amount as number, { by: 'ann' }))).toBe('INVALID_REQUEST');
    for (const decision of [{}, { by: '' }, { by: 7 }, { by: 'ann', note: 7 }, null])
      expect(await codeOf(process.runs.denyBudget(id, decision as BudgetDecision))).toBe('INVALID_REQUEST');
    await world.end();
  });

  it('BUD-2: what was consumed is never forgotten, by a restart of the process, a retry or a new part', async () => {
    const { agents, model } = scene([CALL, DONE, DONE]);
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await startWith(process, 15);
    await reaches(process, id, 'waiting');
    process = await world.restart(agents);
    await process.runs.denyBudget(id, { by: 'bob' });
    await process.runs.retry(id);
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['budget'], usage: { totalTokens: 15 } });
    await process.runs.cancel(id);
    await process.runs.restart(id, { prompt: 'again' });
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['budget'], usage: { totalTokens: 15 } });
    expect(model.requests).toHaveLength(1);
    await world.end();
  });

  // B093
  it('BUD-3: a budgeted model that does not say what it used fails the run before anything is done or anybody asked', async () => {
    const { agents, ran } = scene([{ calls: [{ name: 'free' }, { name: 'gated' }], usage: null }, DONE]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await startWith(process, 1_000);
    expect(await reaches(process, id, 'failed', 'waiting')).toMatchObject({
      status: 'failed',
      error: { code: 'USAGE_UNKNOWN' },
      usage: { unknownCalls: 1 },
    });
    expect(ran).toEqual([]);
    expect(await entriesOf(process.store, id, 'interaction.requested')).toEqual([]);
    const free = await process.runs.start({ agent: 'support', prompt: 'without a budget' });
    await reaches(process, free.id, 'waiting');
    await world.end();
  });

  it.each(['approve first', 'grant first'])('BUD-1: a run may wait for a person and for budget: %s', async (order) => {
    const { agents, ran, model } = scene([{ calls: [{ name: 'gated' }, { name: 'free' }] }, DONE]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await startWith(process, 15);
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['approval', 'budget'] });
    const [ask] = await asksOf(process, id, 1);
    expect(await codeOf(process.runs.resume(id))).toBe('OPEN_INTERACTIONS');
    const steps = [
      () => process.runs.respond(id, ask!.id, approve),
      () => process.runs.grantBudget(id, 100, { by: 'ann' }),
    ];
    if (order === 'grant first') steps.reverse();
    await steps[0]!();
    expect(await process.runs.get(id)).toMatchObject({
      status: 'waiting',
      waitingFor: [order === 'grant first' ? 'approval' : 'budget'],
    });
    await process.recovery.reconcile();
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', attempt: 1 });
    await steps[1]!();
    await reaches(process, id, 'completed');
    expect(ran).toEqual(['gated', 'free']);
    expect(model.requests).toHaveLength(2);
    await world.end();
  });

  it('BUD-2: a limit given with a resume for another reason is stored and told', async () => {
    const { agents } = scene([{ calls: [{ name: 'gated' }] }, DONE]);
    const world = await World.over(store);
    const process = await world.process(agents, { resumeAfterAnswers: 'manual' });
    const id = await startWith(process, 20);
    await reaches(process, id, 'waiting');
    const [ask] = await asksOf(process, id, 1);
    await process.runs.respond(id, ask!.id, approve);
    await process.runs.resume(id, { budget: { maxTotalTokens: 99 } });
    expect(await reaches(process, id, 'completed')).toMatchObject({ budget: { maxTotalTokens: 99 } });
    expect(await entriesOf(process.store, id, 'budget.limit_replaced')).toMatchObject([{ maxTotalTokens: 99 }]);
    await world.end();
  });
});
