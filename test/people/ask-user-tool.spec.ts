import { describe, expect, it } from '@jest/globals';
import type { InteractionResponse } from '../../lib/contracts/run-requests.js';
import type { JsonObject, JsonValue } from '../../lib/contracts/json.js';
import type { ToolMessage } from '../../lib/contracts/message.js';
import { askUserTool } from '../../lib/engine/ask-user-tool.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { ENGINE_STORES } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, codeOf, reaches, World } from './world.js';

const askUser = askUserTool();

const QUESTIONS: JsonValue = [
  { id: 'city', text: 'Which city?', choices: ['Bonn', 'Ulm'] },
  { id: 'when', text: 'When?' },
];

function asking(...calls: { name: string; args?: JsonValue }[]) {
  const model = scriptedModel([{ calls }, { text: 'done' }], { place: 'transcript' });
  const ran: string[] = [];
  const free = tool('free', () => {
    ran.push('free');
    return 'free';
  });
  const gated = tool('gated', () => 'gated', { asks: () => ({}) });
  const results = () => (model.requests[1]?.messages.at(-1) as ToolMessage).content;
  return { model, ran, results, agents: agent(model, [askUser, free, gated]) };
}

const answer = (answers: JsonObject): InteractionResponse => ({ action: 'accept', by: 'ann', answers });

describe.each(ENGINE_STORES)('the ask_user tool on $name', (store) => {
  it('PPL-8: a model asks, its other calls go on, and the answers are the result of its call', async () => {
    const { agents, results, ran, model } = asking(
      { name: 'ask_user', args: { questions: QUESTIONS } },
      { name: 'free' },
      { name: 'gated' },
    );
    const world = await World.over(store);
    let process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['approval', 'question'] });
    expect(ran).toEqual(['free']);
    process = await world.restart(agents);
    const [question, gate] = await asksOf(process, id, 2);
    expect(question).toMatchObject({ kind: 'question', tool: 'ask_user', arguments: null, questions: QUESTIONS });
    expect(await codeOf(process.runs.respond(id, question!.id, approve))).toBe('INVALID_REQUEST');
    expect(await codeOf(process.runs.respond(id, question!.id, answer({ city: 'Rom', when: 'now' })))).toBe(
      'INVALID_ANSWER',
    );
    await process.runs.respond(id, question!.id, answer({ city: 'Ulm', when: 'now' }));
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', waitingFor: ['approval'] });
    await process.runs.respond(id, gate!.id, approve);
    await reaches(process, id, 'completed');
    expect(results().map(({ outcome, output }) => ({ outcome, output }))).toEqual([
      { outcome: 'success', output: { city: 'Ulm', when: 'now' } },
      { outcome: 'success', output: 'free' },
      { outcome: 'success', output: 'gated' },
    ]);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toContain('ask_user');
    expect(await entriesOf(process.store, id, 'tool.started')).toHaveLength(2);
    await world.end();
  });

  it.each([
    ['decline', 'Declined by ann: ask somebody else'],
    ['cancel', 'Cancelled by ann: ask somebody else'],
    ['expire', 'Cancelled by system: Nobody decided in time.'],
  ] as const)('PPL-8: the model is told who did not answer: %s', async (way, output) => {
    const { agents, results } = asking({ name: 'ask_user', args: { questions: QUESTIONS } });
    const world = await World.over(store);
    const process = await world.process(agents, { approvalExpiresMs: way === 'expire' ? 1 : null });
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, id, 'waiting');
    const [ask] = await asksOf(process, id, 1);
    if (way === 'expire')
      await until(async () => {
        await process.recovery.expireInteractions();
        return (await process.runs.get(id)).status !== 'waiting';
      }, 'the question is expired');
    else await process.runs.respond(id, ask!.id, { action: way, by: 'ann', note: 'ask somebody else' });
    await reaches(process, id, 'completed');
    expect(results()).toMatchObject([{ outcome: 'denied', output }]);
    await world.end();
  });

  it('MOD-4: questions that make no sense are told to the model, and nobody is asked', async () => {
    const wrong: JsonValue[] = [
      {},
      { questions: [] },
      { questions: 'Which city?' },
      { questions: [{ text: 'no id' }] },
      { questions: [{ id: 'a', text: '' }] },
      { questions: [{ id: 'a', text: 'x', choices: ['b', 'b'] }] },
      { questions: [{ id: 'a', text: 'x', allowCustom: 'yes' }] },
      { questions: [{ id: 'a', text: 'x', schema: { type: 'number', minimum: 'none' } }] },
      // None of them is compiled: each of these ended the process, stopped its loop, or took any answer.
      { questions: [{ id: 'a', text: 'x', schema: { $async: true, type: 'string' } }] },
      { questions: [{ id: 'a', text: 'x', schema: { $async: true } }] },
      { questions: [{ id: 'a', text: 'x', schema: { pattern: '^(a+)+$' } }] },
      { questions: [{ id: 'a', text: 'x', schema: { $ref: '#' } }] },
      { questions: Array.from({ length: 3_000 }, (_, n) => ({ id: `q${n}`, text: 'x' })) },
      { questions: [{ id: 'a', text: 'x', choices: Array.from({ length: 1_001 }, (_, n) => `c${n}`) }] },
    ];
    const { agents, results } = asking(...wrong.map((args) => ({ name: 'ask_user', args })));
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, id, 'completed');
    for (const result of results()) expect(result).toMatchObject({ outcome: 'invalid_arguments' });
    expect(await entriesOf(process.store, id, 'interaction.requested')).toEqual([]);
    await world.end();
  });
});
