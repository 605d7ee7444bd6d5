import type { Message, UserMessage } from '../../lib/contracts/message.js';
import type { ListQuery } from '../../lib/contracts/ports/run-store.port.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted, ScriptedStep } from '../../lib/model/scripted/script-step.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, entryTypes, stopEngines, tool } from '../support/engine-harness.js';
import { assertSound } from '../support/sound-journal.js';
import { EVERY_STORE } from '../support/stores.js';
import { asksOf, deny, reaches, World } from '../people/world.js';

afterEach(stopEngines);

const inSession = (prompt: string, more: object = {}) => ({ agent: 'support', prompt, sessionId: 's', ...more });
const refunds = { calls: [{ name: 'refund', args: { order: 'o-1', cents: 500 } }] };
/** Refused for good when it is asked for first; afterwards it is the next step. */
const refused = (then: ScriptedStep = {}): Scripted => ({ ...then, fail: { status: 400 } });
const refund = () => tool('refund', () => ({ refunded: true }), { recovery: 'idempotent' });

const textOf = (message: Message | undefined): string =>
  message?.role === 'user' ? message.content.map((part) => ('text' in part ? part.text : '')).join('') : '';
/** The lines about calls of the note that a transcript has. */
const linesOf = (messages: readonly Message[] = []): string[] =>
  messages
    .flatMap((message) => (message.role === 'user' && message.kind === 'effects' ? [textOf(message)] : []))
    .join()
    .split('\n')
    .slice(1);

describe.each(EVERY_STORE)('effects of a run that failed, on $name', (store) => {
  it('R236: reach the next run of its session in one message, once, the same for every process', async () => {
    const model = scriptedModel([refunds, refused({ text: 'It is done already.' }), { text: 'You are welcome.' }]);
    const world = await World.over(store);
    const first = await world.process(agent(model, [refund()]));
    const failed = await first.runs.startAndWait(inSession('refund o-1'));
    expect(failed.status).toBe('failed');
    const office = await world.office(agent(model, [refund()]));
    expect(linesOf(await office.runs.sessionMessages('s'))).toHaveLength(2);

    const next = await first.runs.startAndWait(inSession('please try again'));
    expect(next).toMatchObject({ status: 'completed', output: 'It is done already.' });
    const request = model.requests.at(-1)!.messages;
    expect(request).toHaveLength(2);
    expect(textOf(request[0])).toMatch(/^Note from the application, not from the user: /);
    const lines = [`Run ${failed.id} (failed):`, '- refund {"order":"o-1","cents":500}: done'];
    expect(linesOf(request)).toEqual(lines);
    expect(request[0]).toMatchObject({ role: 'user', id: `${next.id}/effects`, runIds: [failed.id] });
    expect(textOf(request[1])).toBe('please try again');
    expect(await office.runs.messages(next.id)).toMatchObject([{ kind: 'effects' }, {}, { role: 'assistant' }]);

    const second = await world.restart(agent(model, [refund()]));
    await reaches(second, (await second.runs.start(inSession('thanks'))).id, 'completed');
    expect(model.requests.at(-1)!.messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'user']);
    expect(linesOf(model.requests.at(-1)!.messages)).toEqual(lines);
    await world.end();
  });

  it('R236: are fixed with the first claim, and the same for whoever takes the run over', async () => {
    const model = scriptedModel([refunds, refused({ hang: true })]);
    const world = await World.over(store);
    const office = await world.office(agent(model, [refund()]));
    const worker = await world.another(agent(model, [refund()]));
    await office.runs.startAndWait(inSession('refund o-1'));
    const { id } = await office.runs.start(inSession('please try again'));
    await model.requested(3);
    expect((await entryTypes(office, id)).slice(0, 3)).toEqual(['run.submitted', 'history.effects', 'run.started']);
    await worker.stop();
    const other = await world.another(agent(scriptedModel([{ text: 'fine' }]), [refund()]));
    await reaches(other, id, 'completed');
    await world.end();
  });
});

/** What the run after is told of runs of other ends. */
async function toldAfter(end: string, scene: (world: World) => Promise<void>): Promise<string[]> {
  const world = await World.over(EVERY_STORE[0]!);
  await scene(world);
  const model = scriptedModel([{ text: 'ok' }]);
  const process = await world.restart(agent(model, [refund()]));
  const { id } = await process.runs.start(inSession('again'));
  await reaches(process, id, 'completed');
  await world.end();
  const [head = '', ...lines] = linesOf(model.requests[0]?.messages);
  expect(head).toMatch(head === '' ? '' : `(${end}):`);
  return lines;
}

describe('R236: what is told of', () => {
  const args = '{"order":"o-1","cents":500}';

  it('a run that was cancelled in the middle of a call: that its outcome is unknown', async () => {
    let entered = (): void => undefined;
    const isInside = new Promise<void>((resolve) => (entered = resolve));
    const hangs = tool('refund', () => (entered(), new Promise(() => undefined)), { recovery: 'manual' });
    const lines = await toldAfter('cancelled', async (world) => {
      const process = await world.process(agent(scriptedModel([refunds]), [hangs]), { shutdownTimeoutMs: 1 });
      const { id } = await process.runs.start(inSession('go'));
      await isInside;
      await process.runs.cancel(id);
    });
    expect(lines).toEqual([`- refund ${args}: outcome unknown, it was interrupted`]);
  });

  it('a run that passed its deadline', async () => {
    const lines = await toldAfter('timed_out', async (world) => {
      const model = scriptedModel([refunds, { hang: true }]);
      const process = await world.process(agent(model, [refund()]));
      const { id } = await process.runs.start(inSession('go', { maxDuration: 300 }));
      await reaches(process, id, 'timed_out');
    });
    expect(lines).toEqual([`- refund ${args}: done`]);
  });

  it('a call with an error: that it reported one; of safe, denied and invalid calls, and of blocked runs: nothing', async () => {
    const look = tool('look', () => 1);
    const fails = tool('pay', () => Promise.reject(new Error('502')), { recovery: 'manual' });
    const gated = tool('gated', () => 1, { recovery: 'manual', asks: () => ({}) });
    const lines = await toldAfter('failed', async (world) => {
      const calls = [{ name: 'look' }, { name: 'pay', args: { cents: 1 } }, { name: 'gated' }, { name: 'nothing' }];
      const process = await world.process(agent(scriptedModel([{ calls }, refused()]), [look, fails, gated]));
      const { id } = await process.runs.start(inSession('go'));
      const [ask] = await asksOf(process, id, 1);
      await process.runs.respond(id, ask!.id, deny);
      await reaches(process, id, 'failed');
    });
    expect(lines).toEqual(['- pay {"cents":1}: reported an error']);
  });

  it('a run that did nothing: nothing', async () => {
    const lines = await toldAfter('failed', async (world) => {
      const process = await world.process(agent(scriptedModel([refused()])));
      await process.runs.startAndWait(inSession('go'));
    });
    expect(lines).toEqual([]);
  });

  it('calls whose arguments an approver changed: what was executed, not what was asked for', async () => {
    const gated = tool('refund', () => 1, { recovery: 'manual', asks: () => ({}) });
    const lines = await toldAfter('failed', async (world) => {
      const process = await world.process(agent(scriptedModel([refunds, refused()]), [gated]));
      const { id } = await process.runs.start(inSession('go'));
      const [ask] = await asksOf(process, id, 1);
      await process.runs.respond(id, ask!.id, {
        decision: 'approve',
        by: 'ann',
        arguments: { order: 'o-1', cents: 5 },
      });
      await reaches(process, id, 'failed');
    });
    expect(lines).toEqual(['- refund {"order":"o-1","cents":5}: done']);
  });

  it('a run whose journal cannot be read: that, and the session goes on', async () => {
    class Torn extends MemoryRunStore {
      torn: string | null = null;
      override async readJournal(runId: string, after: number, limit: number) {
        const page = await super.readJournal(runId, after, limit);
        return page && runId === this.torn ? { ...page, entries: page.entries.slice(1) } : page;
      }
    }
    const store = new Torn();
    const model = scriptedModel([refunds, refused({ text: 'ok' })]);
    const { runs } = await engineOver(store, agent(model, [refund()]));
    store.torn = (await runs.startAndWait(inSession('go'))).id;
    expect(await runs.startAndWait(inSession('again'))).toMatchObject({ status: 'completed' });
    expect(linesOf(model.requests.at(-1)?.messages)[1]).toBe('- unknown: its journal cannot be read');
  });
});

it('R236: a run that waited in line behind the one that failed is told with its first claim', async () => {
  let go = (): void => undefined;
  const after = new Promise<void>((resolve) => (go = resolve));
  const store = new MemoryRunStore();
  const model = scriptedModel([{ ...refunds, after }, refused({ text: 'ok' })]);
  const { runs } = await engineOver(store, agent(model, [refund()]));
  const failing = await runs.start(inSession('one'));
  const next = await runs.start(inSession('two', { enqueue: true }));
  go();
  expect(await runs.result(next.id)).toMatchObject({ status: 'completed' });
  expect(linesOf(model.requests.at(-1)?.messages)[0]).toBe(`Run ${failing.id} (failed):`);
  await assertSound(store, next.id);
});

it('R236: several runs are told in the order of their beginning, and those before a completed one not again', async () => {
  const call = (cents: number) => ({ calls: [{ name: 'refund', args: { cents } }] });
  const model = scriptedModel([call(1), refused(call(2)), refused({ text: 'ok' }), call(3), refused({ text: 'ok' })]);
  const { runs } = await engineOver(new MemoryRunStore(), agent(model, [refund()]));
  for (const prompt of ['one', 'two', 'three', 'four', 'five']) await runs.startAndWait(inSession(prompt));
  const notes = model.requests.at(-1)!.messages.filter((message) => (message as UserMessage).kind === 'effects');
  const cents = notes.map((note) => [...textOf(note).matchAll(/"cents":(\d)/g)].map(([, digit]) => Number(digit)));
  expect(cents).toEqual([[1, 2], [3]]);
});

it('R236: a run that starts over keeps what it was told', async () => {
  const store = new MemoryRunStore();
  const model = scriptedModel([refunds, refused({ text: 'ok' }), { text: 'ok again' }]);
  const { runs } = await engineOver(store, agent(model, [refund()]));
  await runs.startAndWait(inSession('one'));
  const { id } = await runs.startAndWait(inSession('two'));
  await runs.restart(id);
  expect(await runs.result(id)).toMatchObject({ output: 'ok again' });
  expect(model.requests.at(-1)!.messages).toEqual(
    model.requests
      .at(-2)!
      .messages.map((message, index) => ({ ...message, id: index === 0 ? message.id : `${id}/r2.i0` })),
  );
  await assertSound(store, id);
});

it('R236: runs of a parallel session are told what failed before their first claim', async () => {
  const store = new MemoryRunStore();
  const model = scriptedModel([refunds, refused({ text: 'ok' }), { text: 'ok' }]);
  const engine = await engineOver(store, agent(model, [refund()], { sessionMode: 'parallel' }));
  await engine.runs.startAndWait(inSession('one'));
  engine.worker.pause();
  const next = await engine.runs.start(inSession('two'));
  engine.worker.resume();
  await engine.runs.result(next.id);
  expect(linesOf(model.requests.at(-1)?.messages)).toHaveLength(2);
  await engine.runs.startAndWait(inSession('three'));
  const kinds = model.requests.at(-1)!.messages.map((message) => (message as UserMessage).kind ?? message.role);
  expect(kinds).toEqual(['effects', 'user', 'assistant', 'user']);
  await assertSound(store, next.id);
});

it('CTX-4: a session whose runs complete looks for no others', async () => {
  let lists = 0;
  class Counting extends MemoryRunStore {
    override list(query: ListQuery) {
      if (query.statuses?.includes('failed')) lists++;
      return super.list(query);
    }
  }
  for (const sessionMode of ['serial', 'parallel'] as const) {
    const model = scriptedModel([refunds, { text: 'ok' }], { place: 'transcript' });
    const engine = await engineOver(new Counting(), agent(model, [refund()], { sessionMode }));
    for (const prompt of ['one', 'two']) await engine.runs.startAndWait(inSession(prompt));
    engine.worker.pause();
    const { id } = await engine.runs.start(inSession('three'));
    engine.worker.resume();
    await engine.runs.result(id);
  }
  expect(lists).toBe(0);
});
