import { describe, expect, it } from '@jest/globals';
import type { Message } from '../../lib/contracts/message.js';
import type { StartOptions } from '../../lib/contracts/run-requests.js';
import { scriptedModel, type ScriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf, journalOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, codeOf, type Process, reaches, World } from './world.js';

const TURN = {
  inputTokens: 10,
  cachedInputTokens: 0,
  outputTokens: 5,
  reasoningTokens: 0,
  totalTokens: 15,
  unknownCalls: 0,
};

const texts = (messages: readonly Message[] = []) =>
  messages.flatMap((message) =>
    message.role === 'system'
      ? []
      : message.content.flatMap((part) => (part.type === 'text' ? [`${message.role}: ${part.text}`] : [])),
  );

const lastRequest = (model: ScriptedModel) => texts(model.requests.at(-1)?.messages);

/** Calls a tool with a key of its own, then echoes; prompts that begin with `fail` fail. */
function scene(options: Parameters<typeof agent>[2] = {}) {
  const operations: string[] = [];
  const promptOf = (messages: readonly Message[]) =>
    texts(messages.filter(({ role }) => role === 'user'))
      .at(-1)
      ?.slice('user: '.length) ?? '';
  const script: Scripted[] = [
    ({ messages }) => {
      if (promptOf(messages).startsWith('fail')) return { fail: { status: 400, times: Number.POSITIVE_INFINITY } };
      return promptOf(messages).startsWith('ask') ? { calls: [{ name: 'gated' }] } : { calls: [{ name: 'note' }] };
    },
    ({ messages }) => ({ text: `did ${promptOf(messages)}` }),
  ];
  const model = scriptedModel(script, { place: 'transcript' });
  const note = tool('note', (_input, { operationId }) => void operations.push(operationId));
  const gated = tool('gated', (_input, { operationId }) => void operations.push(operationId), { asks: () => ({}) });
  return { operations, model, agents: agent(model, [note, gated], options) };
}

async function run(process: Process, options: Partial<StartOptions> = {}): Promise<string> {
  const { id } = await process.runs.start({ agent: 'support', prompt: 'one', ...options });
  return id;
}

describe.each(ENGINE_STORES)('restart on $name', (store) => {
  it('RUN-5: a completed run starts over on the same record, and the part before stays readable', async () => {
    const { agents, model, operations } = scene();
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await run(process);
    const before = await reaches(process, id, 'completed');
    const journal = await journalOf(process.store, id);
    process = await world.restart(agents);
    const again = await process.runs.restart(id, { prompt: 'two', by: 'ann' });
    expect(again).toMatchObject({ restarts: 1 });
    const after = await reaches(process, id, 'completed');
    expect(after).toMatchObject({
      id,
      output: 'did two',
      restarts: 1,
      attempt: 2,
      turn: 4,
      usage: { totalTokens: 60 },
      previousGenerations: [
        {
          status: 'completed',
          output: 'did one',
          turns: 2,
          usage: { ...TURN, inputTokens: 20, outputTokens: 10, totalTokens: 30 },
          startedAt: before.startedAt,
          finishedAt: before.finishedAt,
        },
      ],
    });
    expect(after.sequence).toBeGreaterThan(before.sequence);
    expect((await journalOf(process.store, id)).slice(0, journal.length)).toEqual(journal);
    expect(lastRequest(model)).toEqual(['user: two']);
    expect(operations).toEqual([`${id}/r1.m1.t0`, `${id}/r2.m1.t0`]);
    expect(await entriesOf(process.store, id, 'run.restarted')).toMatchObject([{ generation: 2, by: 'ann' }]);
    expect(await entriesOf(process.store, id, 'run.resumed')).toMatchObject([{ cause: 'restarted', attempt: 2 }]);
    await world.end();
  });

  it('RUN-5: without a prompt it does what it was last given, as often as it is told', async () => {
    const { agents, model } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await run(process, { prompt: 'fail' });
    await reaches(process, id, 'failed');
    await process.runs.restart(id);
    await reaches(process, id, 'failed');
    await process.runs.restart(id, { prompt: 'three' });
    await reaches(process, id, 'completed');
    await process.runs.restart(id);
    const last = await reaches(process, id, 'completed');
    expect(last.previousGenerations).toMatchObject([
      { status: 'failed', error: { code: 'MODEL_CALL_FAILED' }, turns: 1 },
      { status: 'failed', turns: 1, usage: { totalTokens: 0 } },
      { status: 'completed', output: 'did three', turns: 2 },
    ]);
    expect(last).toMatchObject({ restarts: 3, output: 'did three', turn: 6 });
    expect(last.error).toBeUndefined();
    expect(model.requests.map(({ messages }) => texts(messages)[0])).toEqual([
      'user: fail',
      'user: fail',
      'user: three',
      'user: three',
      'user: three',
      'user: three',
    ]);
    await world.end();
  });

  it('RUN-5: a cancelled run starts over with asks of its own, and those of the part before stay withdrawn', async () => {
    const { agents, operations } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await run(process, { prompt: 'ask first' });
    await reaches(process, id, 'waiting');
    const [first] = await asksOf(process, id, 1);
    await process.runs.cancel(id);
    await process.runs.restart(id);
    await reaches(process, id, 'waiting');
    const [second] = await asksOf(process, id, 1);
    expect(second!.id).not.toBe(first!.id);
    expect(await codeOf(process.runs.respond(id, first!.id, approve))).toBe('ALREADY_DECIDED');
    await process.runs.respond(id, second!.id, approve);
    expect(await reaches(process, id, 'completed')).toMatchObject({
      previousGenerations: [{ status: 'cancelled', turns: 1 }],
    });
    expect(operations).toEqual([`${id}/r2.m1.t0`]);
    await world.end();
  });

  it('RUN-5: a run that passed its deadline starts over without it', async () => {
    const { agents } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await run(process, { prompt: 'ask', deadline: new Date(Date.now() + 150) });
    await reaches(process, id, 'waiting');
    const passed = new Promise((resolve) => setTimeout(resolve, 160));
    await passed;
    await process.recovery.reconcile();
    await reaches(process, id, 'timed_out');
    await process.runs.restart(id, { prompt: 'two' });
    const after = await reaches(process, id, 'completed');
    expect(after.deadline).toBeUndefined();
    expect(after.previousGenerations).toMatchObject([{ status: 'timed_out', error: { code: 'RUN_TIMED_OUT' } }]);
    await world.end();
  });

  it('RUN-5: an open run is not started over, and of two at once one wins', async () => {
    const { agents } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const office = await world.office(agents);
    const id = await run(process, { prompt: 'ask' });
    await reaches(process, id, 'waiting');
    expect(await codeOf(process.runs.restart(id))).toBe('ILLEGAL_TRANSITION');
    await process.runs.cancel(id);
    const outcomes = await Promise.all([process, office].map((one) => codeOf(one.runs.restart(id, { prompt: 'ask' }))));
    expect([...outcomes].sort()).toEqual(['ILLEGAL_TRANSITION', 'accepted']);
    await reaches(process, id, 'waiting');
    expect((await process.runs.get(id)).restarts).toBe(1);
    expect(await codeOf(process.runs.restart('no-such-run'))).toBe('RUN_NOT_FOUND');
    expect(await codeOf(process.runs.restart(id, { prompt: ' ' }))).toBe('INVALID_REQUEST');
    await world.end();
  });

  it('RUN-5: it is refused once a later run of its session has started', async () => {
    const { agents } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const first = await run(process, { sessionId: 's' });
    await reaches(process, first, 'completed');
    const second = await run(process, { sessionId: 's', prompt: 'fail' });
    await reaches(process, second, 'failed');
    expect(await codeOf(process.runs.restart(first))).toBe('ILLEGAL_TRANSITION');
    await process.runs.restart(second, { prompt: 'two' });
    await reaches(process, second, 'completed');
    expect(texts(await process.runs.sessionMessages('s'))).toEqual([
      'user: one',
      'assistant: did one',
      'user: two',
      'assistant: did two',
    ]);
    await world.end();
  });

  it('SUB-5: a completed run that starts over leaves the history of its session until it has completed anew', async () => {
    const { agents, model } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const first = await run(process, { sessionId: 's', prompt: 'zero' });
    await reaches(process, first, 'completed');
    const second = await run(process, { sessionId: 's', prompt: 'one' });
    await reaches(process, second, 'completed');
    await process.runs.restart(second, { prompt: 'ask two' });
    await reaches(process, second, 'waiting');
    expect(texts(model.requests.at(-1)?.messages)).toEqual(['user: zero', 'assistant: did zero', 'user: ask two']);
    expect(await codeOf(process.runs.start({ agent: 'support', prompt: 'x', sessionId: 's' }))).toBe('SESSION_BUSY');
    expect(texts(await process.runs.sessionMessages('s'))).toEqual(['user: zero', 'assistant: did zero']);
    // Done anew it is the latest again; the chain of histories does not bite its own tail.
    await process.runs.respond(second, (await asksOf(process, second, 1))[0]!.id, approve);
    await reaches(process, second, 'completed');
    const history = ['user: zero', 'assistant: did zero', 'user: ask two', 'assistant: did ask two'];
    expect(texts(await process.runs.sessionMessages('s'))).toEqual(history);
    // And one that fails now adds nothing.
    await process.runs.restart(second, { prompt: 'fail' });
    await reaches(process, second, 'failed');
    const third = await run(process, { sessionId: 's', prompt: 'three' });
    await reaches(process, third, 'completed');
    expect(lastRequest(model)).toEqual(['user: zero', 'assistant: did zero', 'user: three']);
    await world.end();
  });

  it('SUB-4a: of a parallel session only a run that nobody can have seen starts over', async () => {
    const { agents } = scene({ sessionMode: 'parallel' });
    const world = await World.over(store);
    const process = await world.process(agents);
    const first = await run(process, { sessionId: 'p' });
    await reaches(process, first, 'completed');
    await process.runs.restart(first, { prompt: 'two' });
    await reaches(process, first, 'completed');
    expect(texts(await process.runs.sessionMessages('p'))).toEqual(['user: two', 'assistant: did two']);
    const second = await run(process, { sessionId: 'p', prompt: 'fail' });
    await reaches(process, second, 'failed');
    expect(await codeOf(process.runs.restart(first))).toBe('ILLEGAL_TRANSITION');
    await process.runs.restart(second, { prompt: 'three' });
    await reaches(process, second, 'completed');
    expect(texts(await process.runs.sessionMessages('p'))).toEqual([
      'user: two',
      'assistant: did two',
      'user: three',
      'assistant: did three',
    ]);
    await world.end();
  });

  it('RUN-5: nobody alive to execute it means no restart', async () => {
    const { agents } = scene();
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await run(process);
    await reaches(process, id, 'completed');
    process = await world.restart({ ...agents, version: '2', hash: 'hash-2' });
    expect(await codeOf(process.runs.restart(id))).toBe('VERSION_UNAVAILABLE');
    expect(await process.runs.get(id)).toMatchObject({ status: 'completed', attempt: 1, restarts: 0 });
    await world.end();
  });

  it('RUN-5: start with a run id that exists refuses, resumes or starts over, as it is told', async () => {
    const { agents, model } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const office = await world.office(agents);
    const id = 'order-7';
    const start = (options: Partial<StartOptions>) =>
      office.runs.start({ agent: 'support', prompt: 'two', runId: id, ...options });
    await run(process, { runId: id, prompt: 'ask' });
    await reaches(process, id, 'waiting');
    expect(await codeOf(start({}))).toBe('RUN_EXISTS');
    expect(await codeOf(start({ ifExists: 'restart' }))).toBe('ILLEGAL_TRANSITION');
    expect(await codeOf(start({ ifExists: 'resume' }))).toBe('OPEN_INTERACTIONS');
    await process.runs.cancel(id);
    expect(await start({ ifExists: 'resume' })).toMatchObject({ id, status: 'cancelled', restarts: 0 });
    expect(await start({ ifExists: 'restart' })).toMatchObject({ id, restarts: 1 });
    await reaches(process, id, 'completed');
    expect(lastRequest(model)).toEqual(['user: two']);
    // A request id of its own does not change what the run id says; the messages given are the ones taken.
    const messages = [{ role: 'user' as const, content: 'three' }];
    const { prompt: _prompt, ...rest } = { agent: 'support', prompt: '', runId: id, requestId: 'q-1' };
    await office.runs.start({ ...rest, messages, ifExists: 'restart' });
    await reaches(process, id, 'completed');
    expect(lastRequest(model)).toEqual(['user: three']);
    expect((await process.runs.get(id)).restarts).toBe(2);
    await world.end();
  });

  it('RUN-5: a live owner is left alone by a start that would resume', async () => {
    const hold = signal();
    const model = scriptedModel([{ text: 'done', after: hold.promise }]);
    const world = await World.over(store);
    const process = await world.process(agent(model));
    const office = await world.office(agent(model));
    const id = await run(process, { runId: 'order-8' });
    await model.requested(1);
    expect(await codeOf(office.runs.start({ agent: 'support', prompt: 'x', runId: id, ifExists: 'resume' }))).toBe(
      'RUN_LEASED',
    );
    hold.resolve();
    await reaches(process, id, 'completed');
    const again = await office.runs.start({ agent: 'support', prompt: 'x', runId: id, ifExists: 'resume' });
    expect(again).toMatchObject({ status: 'completed', output: 'done', deduplicated: true });
    await world.end();
  });
});
