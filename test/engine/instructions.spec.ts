import type { AgentDefinition, Instructions, InstructionsContext } from '../../lib/contracts/agent-definition.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, engineOver, entryTypes, stopEngines, tool } from '../support/engine-harness.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { EVERY_STORE } from '../support/stores.js';
import { reaches, World } from '../people/world.js';

afterEach(stopEngines);

const look = tool('look', () => 1);
const start = { agent: 'support', prompt: 'Hello', actor: { id: 'ada', roles: ['vip'] }, metadata: { plan: 'gold' } };
const asks = { calls: [{ name: 'look' }] };
const counted = (write: (context: InstructionsContext) => string) => {
  const contexts: InstructionsContext[] = [];
  return { contexts, instructions: (context: InstructionsContext) => (contexts.push(context), write(context)) };
};
const over = async (instructions: unknown, model = scriptedModel([{ text: 'ok' }], { place: 'transcript' })) => {
  const definition = agent(model, [look], { instructions: instructions as Instructions });
  return { model, ...(await engineOver(new MemoryRunStore(), definition)) };
};

describe.each(EVERY_STORE)('instructions by a function, on $name', (store) => {
  it('are evaluated once, and what was returned is what every later request and process uses', async () => {
    const { contexts, instructions } = counted(
      ({ actor, metadata }) => `Help ${actor?.id}, ${String(metadata['plan'])}.`,
    );
    const world = await World.over(store);
    const first = scriptedModel([asks, { hang: true }], { place: 'transcript' });
    const process = await world.process(agent(first, [look], { instructions }), { shutdownTimeoutMs: 1 });
    const { id } = await process.runs.start(start);
    await first.requested(2);
    expect((await entryTypes(process, id)).slice(0, 4)).toEqual([
      'run.submitted',
      'run.started',
      'model.started',
      'instructions.evaluated',
    ]);
    const again = counted(() => 'Other instructions.');
    const second = scriptedModel([asks, { text: 'done' }], { place: 'transcript' });
    const next = await world.restart(agent(second, [look], { instructions: again.instructions }));
    await reaches(next, id, 'completed');
    expect(contexts).toHaveLength(1);
    expect(again.contexts).toHaveLength(0);
    expect([...first.requests, ...second.requests].map((request) => request.instructions)).toEqual(
      Array(3).fill('Help ada, gold.'),
    );
    await world.end();
  });
});

it('are given the input, the actor and the metadata of the run, as copies', async () => {
  const { contexts, instructions } = counted((context) => {
    context.messages.length = 0;
    context.metadata['plan'] = 'none';
    return 'Help.';
  });
  const { runs, model } = await over(instructions);
  const run = await runs.startAndWait({ ...start, sessionId: 's' });
  expect(contexts[0]).toMatchObject({
    agent: 'support',
    version: '1',
    runId: run.id,
    sessionId: 's',
    prompt: 'Hello',
    actor: start.actor,
  });
  expect(model.requests[0]!.messages).toHaveLength(1);
  expect(run.metadata).toEqual({ plan: 'gold' });
});

it('are evaluated anew for the input of a restart', async () => {
  const { instructions } = counted(({ prompt }) => `About ${prompt}.`);
  const { runs, model } = await over(instructions);
  const { id } = await runs.startAndWait(start);
  await runs.restart(id, { prompt: 'Bye' });
  await runs.result(id);
  expect(model.requests.map((request) => request.instructions)).toEqual(['About Hello.', 'About Bye.']);
});

it.each<[string, unknown, RegExp]>([
  [
    'throws',
    () => {
      throw new Error('no plan for token=abcdef0123456789');
    },
    /threw: no plan/,
  ],
  ['rejects', () => Promise.reject(new TypeError('no plan')), /threw: no plan/],
  ['returns nothing', () => undefined, /returned no text/],
  ['returns blank text', () => ' \n', /returned no text/],
  ['returns an object', () => ({ text: 'Help.' }), /returned no text/],
])('fail the run before any request when the function %s; retry evaluates it again', async (_, broken, message) => {
  let isBroken = true;
  const { runs, model } = await over((context: InstructionsContext) =>
    isBroken ? (broken as (given: unknown) => string)(context) : 'Help.',
  );
  const run = await runs.startAndWait(start);
  expect(run).toMatchObject({
    status: 'failed',
    error: { code: 'INSTRUCTIONS_FAILED', message: expect.stringMatching(message) },
  });
  expect(run.error?.message).toContain('support@1');
  expect(run.error?.message).not.toContain('abcdef0123456789');
  expect(model.requests).toHaveLength(0);
  isBroken = false;
  await runs.retry(run.id);
  expect(await runs.result(run.id)).toMatchObject({ status: 'completed' });
});

it('of a text cost no entry', async () => {
  const { runs } = await over('Help.');
  const run = await runs.startAndWait(start);
  expect(await entryTypes({ runs } as never, run.id)).not.toContain('instructions.evaluated');
});

describe('the settings of an agent', () => {
  const requestsOf = async (options: Partial<AgentDefinition>) => {
    const model = scriptedModel([asks, asks, { text: 'ok' }], { place: 'transcript' });
    const { runs } = await engineOver(new MemoryRunStore(), agent(model, [look], options));
    expect(await runs.startAndWait(start)).toMatchObject({ status: 'completed' });
    return model.requests;
  };

  it('go with every request', async () => {
    const modelSettings = { temperature: 0, stopSequences: ['END'] };
    const requests = await requestsOf({ modelSettings });
    expect(requests.map(({ settings }) => settings)).toEqual(Array(3).fill(modelSettings));
    expect(requests.map(({ toolChoice }) => toolChoice)).toEqual(Array(3).fill(undefined));
  });

  it('a tool choice that demands a call holds for the first request, so that the run can end', async () => {
    for (const toolChoice of ['required', { tool: 'look' }] as const)
      expect((await requestsOf({ toolChoice })).map((request) => request.toolChoice)).toEqual([
        toolChoice,
        'auto',
        'auto',
      ]);
    expect((await requestsOf({ toolChoice: 'none' })).map((request) => request.toolChoice)).toEqual(
      Array(3).fill('none'),
    );
  });
});
