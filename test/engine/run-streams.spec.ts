import { afterEach, describe, expect, it } from '@jest/globals';
import { setMaxListeners } from 'node:events';
import type { StreamedEvent } from '../../lib/contracts/run-view.js';
import { JournalCorruptError } from '../../lib/errors/store.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, type TestEngine, tool } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

/** One process that executes, and one that only reads, over one store. */
async function twoProcesses(work: () => unknown = () => 'worked') {
  const store = new FailingStore(new MemoryRunStore());
  const script = [{ calls: [{ name: 'work' }] }, { text: 'done' }];
  const definition = agent(scriptedModel(script, { place: 'transcript' }), [tool('work', work)]);
  const engine = await engineOver(store, definition);
  const reader = await engineOver(store, definition, { worker: false });
  return { store, engine, reader };
}

async function all(events: AsyncIterable<StreamedEvent>): Promise<StreamedEvent[]> {
  const read: StreamedEvent[] = [];
  for await (const event of events) read.push(event);
  return read;
}

async function stored(engine: TestEngine, runId: string): Promise<StreamedEvent[]> {
  return (await engine.runs.events(runId)).events.map((event) => ({ ...event, id: String(event.id) }));
}

describe('a stream of events', () => {
  it('STR-S1, STR-S3: is the journal from its first entry to its last, in the process that executes and in another', async () => {
    const gate = signal();
    const { engine, reader } = await twoProcesses(() => gate.promise);
    const { id } = await engine.runs.start(start);
    const live = Promise.all([engine, reader].map(({ runs }) => all(runs.stream(id))));
    await until(async () => (await engine.runs.get(id)).sequence === 5);
    gate.resolve();
    const [here, there] = await live;
    expect(here?.at(-1)?.type).toBe('run.completed');
    expect(here).toEqual(await stored(engine, id));
    expect(there).toEqual(here);
  });

  it('STR-S2: goes on after any event, by its id as number or text, and after what lies between two', async () => {
    const { engine } = await twoProcesses();
    const { id } = await engine.runs.startAndWait(start);
    const events = await stored(engine, id);
    for (let after = 0; after <= events.length; after++)
      for (const cursor of [after, `${after}`, `${after}.7`])
        expect(await all(engine.runs.stream(id, { after: cursor }))).toEqual(events.slice(after));
  });

  it.each([99, '99', '99.1', -1, 1.5, '1.', '.1', '1.1.1', '-1', ' 1', '', Number.NaN])(
    'STR-S2: refuses the cursor %p at once',
    async (after) => {
      const { engine } = await twoProcesses();
      const { id } = await engine.runs.startAndWait(start);
      await expect(all(engine.runs.stream(id, { after }))).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
    },
  );

  it('STR-S1: refuses a run that is not there', async () => {
    const { engine } = await twoProcesses();
    await expect(all(engine.runs.stream('nobody'))).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  });

  it('STR-S2: stays open while the run waits, and a settled generation that was restarted does not end it', async () => {
    const model = scriptedModel([{ calls: [{ name: 'pay' }] }, { text: 'paid' }], { place: 'transcript' });
    const definition = agent(model, [tool('pay', () => 'ok', { asks: () => ({}) })]);
    const engine = await engineOver(new MemoryRunStore(), definition);
    const { id } = await engine.runs.start(start);
    await engine.runs.result(id);
    const reading = all(engine.runs.stream(id));
    await engine.runs.cancel(id);
    expect((await reading).at(-1)?.type).toBe('run.cancelled');
    await engine.runs.restart(id);
    const again = all(engine.runs.stream(id));
    const { interactions } = await engine.runs.result(id);
    await engine.runs.respond(id, String(interactions[0]?.id), { decision: 'approve', by: 'boss' });
    const types = (await again).map(({ type }) => type);
    expect(types).toContain('run.cancelled');
    expect(types).toContain('run.suspended');
    expect(types.at(-1)).toBe('run.completed');
  });

  it('STR-S3: one read serves all that wait, and there is none without them', async () => {
    const clock = new ManualClock();
    const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
    const definition = agent(scriptedModel([]), []);
    const reader = await engineOver(store, definition, { worker: false }, clock);
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push((await reader.runs.start(start)).id);
    const ends = new AbortController();
    setMaxListeners(100, ends.signal);
    const open = ids.flatMap((id) => [0, 1].map(() => all(reader.runs.stream(id, { after: 1, signal: ends.signal }))));
    await clock.advance(0);
    const before = store.count('follow');
    await clock.advance(1_500);
    expect(store.count('follow') - before).toBe(10);
    ends.abort();
    expect((await Promise.all(open)).flat()).toEqual([]);
    const timers = clock.pending;
    await clock.advance(10_000);
    expect(store.count('follow') - before).toBe(10);
    expect(clock.pending).toBe(timers);
  });

  it('STR-S3: a commit of the same process is streamed without waiting for the poll', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const script = [{ calls: [{ name: 'work' }] }, { text: 'done' }];
    const definition = agent(scriptedModel(script), [tool('work', () => 'worked')]);
    const engine = await engineOver(store, definition, { streamPollMs: 1_000_000 });
    const { id } = await engine.runs.start(start);
    expect((await all(engine.runs.stream(id))).at(-1)?.type).toBe('run.completed');
  });

  it('STR-S3: a reader that does not read costs no read, and misses nothing', async () => {
    const gate = signal();
    const { engine, store } = await twoProcesses(() => gate.promise);
    const { id } = await engine.runs.start(start);
    const slow = engine.runs.stream(id)[Symbol.asyncIterator]();
    const read = [(await slow.next()).value as StreamedEvent];
    gate.resolve();
    await engine.runs.result(id);
    expect(store.count('follow')).toBe(0);
    for (let next = await slow.next(); !next.done; next = await slow.next()) read.push(next.value);
    expect(read).toEqual(await stored(engine, id));
  });

  it('STR-S3: leaving the loop ends its share of the reads', async () => {
    const { reader, store } = await twoProcesses();
    const { id } = await reader.runs.start(start);
    for await (const event of reader.runs.stream(id)) if (event.type === 'run.submitted') break;
    const before = store.count('follow');
    await new Promise((later) => setTimeout(later, 400));
    expect(store.count('follow')).toBe(before);
  });

  it('STR-S4: a shutdown interrupts it, and says after which event to read on', async () => {
    const { engine, reader } = await twoProcesses(() => new Promise(() => undefined));
    const { id } = await engine.runs.start(start);
    await until(async () => (await engine.runs.get(id)).sequence === 5);
    const reading = all(reader.runs.stream(id));
    await new Promise((later) => setTimeout(later, 50));
    reader.stopWaiting();
    await expect(reading).rejects.toMatchObject({ code: 'STREAM_INTERRUPTED', retryable: true, details: { after: 5 } });
    await expect(all(reader.runs.stream(id))).rejects.toMatchObject({ code: 'STREAM_INTERRUPTED' });
    engine.forget();
  });

  it('STR-S4: is cut when the store is lost, and the run is not affected', async () => {
    const gate = signal();
    const { engine, reader, store } = await twoProcesses(() => gate.promise);
    const { id } = await engine.runs.start(start);
    await until(async () => (await engine.runs.get(id)).sequence === 5);
    const reading = all(reader.runs.stream(id, { after: 5 }));
    store.fail('follow', { times: Number.POSITIVE_INFINITY });
    await expect(reading).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    store.heal();
    gate.resolve();
    expect((await all(reader.runs.stream(id, { after: 5 }))).at(-1)?.type).toBe('run.completed');
  });

  it('STR-S4: a journal that cannot be read cuts the streams of its own run only', async () => {
    const { engine, store } = await twoProcesses(() => 'worked');
    const reader = await engineOver(store, agent(scriptedModel([])), { worker: false, streamPollMs: 20 });
    engine.worker.pause();
    const [broken, sound] = [(await engine.runs.start(start)).id, (await engine.runs.start(start)).id];
    store.fail('follow', {
      times: Number.POSITIVE_INFINITY,
      when: (positions: readonly { runId: string }[]) => positions.some(({ runId }) => runId === broken),
      error: () => new JournalCorruptError('its journal cannot be read', { details: { runId: broken } }),
    });
    const reading = all(reader.runs.stream(sound));
    await expect(all(reader.runs.stream(broken))).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' });
    await engine.runs.cancel(sound);
    expect((await reading).at(-1)?.type).toBe('run.cancelled');
  });

  it('EVT-1: shows facts without content as the lifecycle projection', async () => {
    const { engine } = await twoProcesses();
    const { id } = await engine.runs.startAndWait(start);
    const lifecycle = (await engine.runs.events(id, { projection: 'lifecycle' })).events;
    const read: unknown[] = [];
    for await (const event of engine.runs.stream(id, { projection: 'lifecycle' })) read.push(event);
    expect(read).toEqual(lifecycle.map((event) => ({ ...event, id: String(event.id) })));
  });
});
