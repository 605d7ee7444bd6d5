import { describe, expect, it } from '@jest/globals';
import type { InputGuardrail, ScreenedInput } from '../../lib/contracts/ports/host.port.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, entryTypes, tool } from '../support/engine-harness.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, codeOf, reaches, World } from './world.js';

/** Refuses what contains `evil`, and keeps what it was asked. */
function guarded() {
  const screened: ScreenedInput[] = [];
  const guardrail: InputGuardrail = {
    screen: (input) => {
      screened.push(structuredClone(input));
      const text = JSON.stringify(input.messages);
      if (text.includes('broken')) throw new Error('the guardrail is down');
      return text.includes('evil') ? { refuse: 'no evil here' } : null;
    },
  };
  const model = scriptedModel([{ calls: [{ name: 'gated' }] }, { text: 'done' }, { text: 'done again' }], {
    place: 'transcript',
  });
  const agents = agent(model, [tool('gated', () => 'ok', { asks: () => ({}) })]);
  return { screened, ports: { guardrail }, model, agents };
}

describe('a guardrail that gives no verdict', () => {
  const NO_VERDICTS: unknown[] = [
    undefined,
    true,
    false,
    0,
    '',
    'refused',
    [],
    {},
    { refused: 'x' },
    { refuse: true },
    { refuse: '' },
    { refuse: 'x', allow: true },
    { allowed: true },
  ];

  it('STR-2: refuses prompts, steering and restarts, whatever it says instead', async () => {
    const world = await World.over(ENGINE_STORES[0] as (typeof ENGINE_STORES)[number]);
    let answer: unknown = null;
    const guardrail = { screen: () => answer } as InputGuardrail;
    const model = scriptedModel([{ calls: [{ name: 'gated' }] }, { text: 'done' }], { place: 'transcript' });
    const agents = agent(model, [tool('gated', () => 'ok', { asks: () => ({}) })]);
    const process = await world.process(agents, {}, { guardrail });
    const open = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, open.id, 'waiting');
    const calls = model.requests.length;
    for (answer of NO_VERDICTS) {
      const run = await process.runs.start({ agent: 'support', prompt: 'go' });
      expect([answer, run.status, run.error?.code]).toEqual([answer, 'blocked', 'INPUT_REFUSED']);
      expect([answer, await codeOf(process.runs.steer(open.id, 'go on', { sender: 'ann' }))]).toEqual([
        answer,
        'INPUT_REFUSED',
      ]);
      expect([answer, await codeOf(process.runs.restart(run.id))]).toEqual([answer, 'INPUT_REFUSED']);
    }
    expect(model.requests).toHaveLength(calls);
    await world.end();
  });
});

describe.each(ENGINE_STORES)('the input guardrail on $name', (store) => {
  it('STR-2: a refused prompt leaves a blocked run whose model was never called', async () => {
    const { agents, ports, model, screened } = guarded();
    const world = await World.over(store);
    const process = await world.process(agents, {}, ports);
    const start = { agent: 'support', prompt: 'be evil', requestId: 'q-1', sessionId: 's', actor: { id: 'carl' } };
    const run = await process.runs.start(start);
    expect(run).toMatchObject({
      status: 'blocked',
      phase: 'settled',
      error: { code: 'INPUT_REFUSED', message: 'The prompt was refused: no evil here' },
      attempt: 0,
    });
    expect(screened).toMatchObject([
      { kind: 'prompt', agent: 'support', version: '1', runId: run.id, sessionId: 's', actor: { id: 'carl' } },
    ]);
    expect(await entryTypes(process, run.id)).toEqual(['run.submitted', 'run.blocked']);
    expect(await process.runs.start(start)).toMatchObject({ id: run.id, status: 'blocked', deduplicated: true });
    expect(await process.runs.result(run.id)).toMatchObject({ status: 'blocked' });
    expect(await codeOf(process.runs.retry(run.id))).toBe('ILLEGAL_TRANSITION');
    expect(await codeOf(process.runs.resume(run.id))).toBe('ILLEGAL_TRANSITION');
    // It neither holds its session nor joins its history.
    const next = await process.runs.start({ agent: 'support', prompt: 'be good', sessionId: 's' });
    await reaches(process, next.id, 'waiting');
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1]);
    await world.end();
  });

  it('STR-2: a refused message is refused and never queued', async () => {
    const { agents, ports, model, screened } = guarded();
    const world = await World.over(store);
    const process = await world.process(agents, {}, ports);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'be good' });
    await reaches(process, id, 'waiting');
    const steer = (text: string) => process.runs.steer(id, text, { sender: 'ann', requestId: 'q-1' });
    expect(await codeOf(steer('be evil'))).toBe('INPUT_REFUSED');
    // The id is still free.
    await steer('be kind');
    expect(screened.at(-1)).toMatchObject({ kind: 'steering', runId: id, actor: { id: 'ann' } });
    await process.runs.respond(id, (await asksOf(process, id, 1))[0]!.id, approve);
    await reaches(process, id, 'completed');
    expect(JSON.stringify(model.requests)).not.toContain('evil');
    expect(JSON.stringify(model.requests.at(-1))).toContain('be kind');
    await world.end();
  });

  it('STR-2: nothing is screened again by a restart of the process, an answer or a resume', async () => {
    const { agents, ports, screened } = guarded();
    const world = await World.over(store);
    let process = await world.process(agents, {}, ports);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'be good' });
    await reaches(process, id, 'waiting');
    const strict: InputGuardrail = { screen: (input) => (screened.push(input), { refuse: 'everything' }) };
    process = await world.restart(agents, { resumeAfterAnswers: 'manual' }, { guardrail: strict });
    await process.runs.respond(id, (await asksOf(process, id, 1))[0]!.id, approve);
    await process.runs.resume(id);
    await reaches(process, id, 'completed');
    expect(screened).toHaveLength(1);
    await world.end();
  });

  it('STR-2: a guardrail that fails is an error of its caller, and nothing is stored', async () => {
    const { agents, ports } = guarded();
    const world = await World.over(store);
    const process = await world.process(agents, {}, ports);
    await expect(process.runs.start({ agent: 'support', prompt: 'broken', runId: 'r-1' })).rejects.toThrow(
      'the guardrail is down',
    );
    expect(await codeOf(process.runs.get('r-1'))).toBe('RUN_NOT_FOUND');
    await world.end();
  });

  it('STR-2: a refused prompt is not let in by a restart, and another one is screened like any', async () => {
    const { agents, ports, model, screened } = guarded();
    const world = await World.over(store);
    const process = await world.process(agents, {}, ports);
    const first = await process.runs.start({ agent: 'support', prompt: 'be good', sessionId: 's' });
    await reaches(process, first.id, 'waiting');
    await process.runs.respond(first.id, (await asksOf(process, first.id, 1))[0]!.id, approve);
    await reaches(process, first.id, 'completed');
    const { id } = await process.runs.start({ agent: 'support', prompt: 'be evil', sessionId: 's' });
    expect(await codeOf(process.runs.restart(id))).toBe('INPUT_REFUSED');
    expect(await codeOf(process.runs.restart(id, { prompt: 'more evil' }))).toBe('INPUT_REFUSED');
    const start = { agent: 'support', prompt: 'evil still', runId: id, ifExists: 'restart' } as const;
    expect(await codeOf(process.runs.start(start))).toBe('INPUT_REFUSED');
    expect(await process.runs.get(id)).toMatchObject({ status: 'blocked', restarts: 0 });
    expect(model.requests).toHaveLength(2);
    await process.runs.restart(id, { prompt: 'be better' });
    await reaches(process, id, 'waiting');
    // It sees what its session has said, which it had not when it was refused.
    expect(model.requests[2]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
    expect(screened.at(-1)).toMatchObject({ kind: 'prompt', runId: id, sessionId: 's' });
    await world.end();
  });

  it('STR-2: what has passed once is not screened again when its run starts over as it was', async () => {
    const { agents, ports, screened } = guarded();
    const world = await World.over(store);
    const process = await world.process(agents, {}, ports);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'be good' });
    await reaches(process, id, 'waiting');
    await process.runs.cancel(id);
    await process.runs.restart(id);
    await reaches(process, id, 'waiting');
    expect(screened).toHaveLength(1);
    await world.end();
  });
});
