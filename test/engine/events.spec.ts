import { afterEach, describe, expect, it } from '@jest/globals';
import type { RunEvent } from '../../lib/contracts/run-view.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, stopEngines, tool, type TestEngine } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { journalOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const script: Scripted[] = [{ calls: [{ name: 'work' }] }, { text: 'done' }];

async function completed(): Promise<{ engine: TestEngine; store: MemoryRunStore; id: string }> {
  const store = new MemoryRunStore();
  const engine = await engineOver(store, agent(scriptedModel(script), [tool('work', () => 'worked')]));
  const run = await engine.runs.startAndWait(start);
  return { engine, store, id: run.id };
}

describe('the snapshot of a run', () => {
  it('EVT-1: is one moment, though the run goes on while it is read: run, operations, open asks and cursor', async () => {
    const inner = new MemoryRunStore();
    const gate = signal();
    const model = scriptedModel([{ calls: [{ name: 'work' }] }, { calls: [{ name: 'pay' }] }], { place: 'transcript' });
    const tools = [tool('work', () => gate.promise), tool('pay', () => 'paid', { asks: () => ({}) })];
    const engine = await engineOver(inner, agent(model, tools));
    const { id } = await engine.runs.start(start);
    await model.requested(1);
    await until(async () => (await engine.runs.get(id)).sequence === 5);
    const store = new FailingStore(inner);
    const reader = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const held = store.hold('snapshot', { after: true });
    const reading = reader.runs.snapshot(id);
    await held.reached;
    gate.resolve();
    await engine.runs.result(id);
    held.open();
    const { run, operations, cursor } = await reading;
    expect(run).toMatchObject({ status: 'running', sequence: 5, interactions: [] });
    expect(run.waitingFor).toBeUndefined();
    expect(operations.map(({ key, status }) => [key, status])).toEqual([
      ['r1.m1', 'completed'],
      ['r1.m1.t0', 'started'],
    ]);
    expect(cursor).toBe(5);
    const { events } = await reader.runs.events(id, { after: cursor });
    expect(events.filter(({ type }) => type === 'interaction.requested')).toHaveLength(1);
    expect(await reader.runs.snapshot(id)).toMatchObject({
      run: { status: 'waiting', interactions: [{ tool: 'pay' }] },
      cursor: events.at(-1)?.id,
    });
  });
});

describe('the events of a run', () => {
  it('EVT-1: are its journal: contiguous, from 1, readable from any cursor, also after the end and in another process', async () => {
    const { store, id } = await completed();
    const reader = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const all = (await reader.runs.events(id)).events;
    expect(all.map((event) => event.id)).toEqual(all.map((_, index) => index + 1));
    expect(all.map(({ type }) => type)).toEqual((await journalOf(store, id)).map(({ type }) => type));
    for (let after = 0; after <= all.length; after++) {
      const page = await reader.runs.events(id, { after });
      expect(page).toEqual({ events: all.slice(after), nextCursor: all.length });
    }
  });

  it('EVT-1: come in pages that neither repeat nor skip', async () => {
    const { engine, id } = await completed();
    const all = (await engine.runs.events(id)).events;
    for (const limit of [1, 2, 5]) {
      const read: RunEvent[] = [];
      for (let after = 0; ;) {
        const page = await engine.runs.events(id, { after, limit });
        if (page.events.length === 0) break;
        expect(page.events.length).toBeLessThanOrEqual(limit);
        read.push(...page.events);
        after = page.nextCursor;
      }
      expect(read).toEqual(all);
    }
  });

  it('EVT-1: a cursor ahead of the run is an error that says where it stands', async () => {
    const { engine, id } = await completed();
    const { nextCursor } = await engine.runs.events(id);
    await expect(engine.runs.events(id, { after: nextCursor + 1 })).rejects.toMatchObject({
      code: 'INVALID_CURSOR',
      details: { latest: nextCursor },
    });
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5x', null])(
    'EVT-1: the cursor %p is refused',
    async (after) => {
      const { engine, id } = await completed();
      await expect(engine.runs.events(id, { after: after as number })).rejects.toMatchObject({
        code: 'INVALID_CURSOR',
      });
    },
  );

  it.each([0, 501, -1, 1.5, Number.NaN, '5'])('EVT-1: a page of %p is refused', async (limit) => {
    const { engine, id } = await completed();
    await expect(engine.runs.events(id, { limit: limit as number })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('EVT-1: a reader who follows a run misses nothing, however its commits and his looks fall together', async () => {
    const store = new MemoryRunStore();
    const steps: Scripted[] = [...Array.from({ length: 20 }, () => ({ calls: [{ name: 'work' }] })), { text: 'done' }];
    const engine = await engineOver(
      store,
      agent(scriptedModel(steps), [tool('work', () => 'worked')], { maxTurns: 30 }),
    );
    const reader = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const run = await engine.runs.start(start);
    const read: RunEvent[] = [];
    while (read.at(-1)?.type !== 'run.completed') {
      const page = await reader.runs.events(run.id, { after: read.length, limit: 3 });
      read.push(...page.events);
      await Promise.resolve();
    }
    expect(read.map(({ id }) => id)).toEqual(read.map((_, index) => index + 1));
  });

  it('EVT-1: reading them never moves the run, and the wait of a caller who gives up does not either', async () => {
    const store = new MemoryRunStore();
    const model = scriptedModel([{ hang: true }]);
    const engine = await engineOver(store, agent(model));
    const run = await engine.runs.start(start);
    await model.requested(1);
    const stop = new AbortController();
    const waiting = engine.runs.result(run.id, { signal: stop.signal });
    stop.abort();
    expect((await waiting).status).toBe('running');
    expect((await engine.runs.result(run.id, { timeout: 1 })).status).toBe('running');
    expect((await engine.runs.get(run.id)).status).toBe('running');
    await engine.runs.cancel(run.id);
  });
});

/** Words that stand for secrets, each in another place. */
const CANARIES = [
  'canary-prompt',
  'canary-system',
  'canary-argument',
  'canary-bad-argument',
  'canary-result',
  'canary-thrown',
  'canary-reply',
  'canary-reasoning',
  'canary-resolved',
  'canary-probed',
  'canary-note',
  'canary-instructions',
  'canary-metadata',
  'canary-finish',
];

describe('what leaves a run by its lifecycle', () => {
  it('EVT-4: neither lifecycle events nor observers nor logs carry prompts, arguments, results, replies or errors', async () => {
    const store = new MemoryRunStore();
    const steps: Scripted[] = [
      {
        text: 'canary-reply',
        parts: [{ type: 'reasoning', text: 'canary-reasoning' }],
        calls: [
          { name: 'work', args: { secret: 'canary-argument' } },
          { name: 'throws', args: { secret: 'canary-argument' } },
          { name: 'pay', args: { secret: 'canary-argument' } },
          { name: 'probed', args: { secret: 'canary-argument' } },
          { name: 'map', args: { secret: 'canary-argument' } },
          { name: 'work', raw: '{"canary-bad-argument' },
          { name: 'canary-bad-argument', args: {} },
        ],
      },
      { text: 'canary-finish', fail: { status: 503, message: 'canary-thrown' } },
    ];
    let crashed = false;
    const entered: string[] = [];
    const hangs = () => (entered.push('pay'), crashed ? 'canary-result' : new Promise(() => undefined));
    const tools = () => [
      tool('work', () => ({ secret: 'canary-result' })),
      tool('throws', () => {
        throw new Error('canary-thrown');
      }),
      tool('pay', hangs, { recovery: 'manual' }),
      tool('probed', hangs, { recovery: 'probe', probe: () => ({ result: 'happened', output: 'canary-probed' }) }),
      tool('map', () => new Map([['canary-result', 1]]), { recovery: 'manual' }),
    ];
    const definition = () =>
      agent(scriptedModel(steps, { place: 'transcript' }), tools(), { instructions: 'canary-instructions' });
    const first = await mortalEngine(store, definition());
    const run = await first.runs.start({
      agent: 'support',
      messages: [
        { role: 'system', content: 'canary-system' },
        { role: 'user', content: 'canary-prompt' },
      ],
      metadata: { tag: 'canary-metadata' },
    });
    await until(() => entered.length === 2);
    await first.crash();
    crashed = true;
    const second = await engineOver(store, definition());
    await second.runs.result(run.id);
    for (const key of ['r1.m1.t2', 'r1.m1.t4'])
      await second.runs.resolveTool(run.id, { key, output: 'canary-resolved', by: 'ann', note: 'canary-note' });
    expect((await second.runs.result(run.id)).status).toBe('completed');

    const full = JSON.stringify((await second.runs.events(run.id)).events);
    // The test speaks of what is really there.
    for (const canary of CANARIES.filter((word) => !['canary-instructions', 'canary-metadata'].includes(word)))
      expect(full).toContain(canary);
    const lifecycle = await second.runs.events(run.id, { projection: 'lifecycle' });
    const outside = JSON.stringify([
      lifecycle.events,
      first.told,
      second.told,
      await second.metrics.read(),
      second.worker.status(),
    ]);
    for (const canary of CANARIES) expect(outside).not.toContain(canary);
    // Of what host code threw, the log has the stack, which begins with its words.
    const logged = JSON.stringify([first.logged, second.logged]);
    for (const canary of CANARIES.filter((word) => word !== 'canary-thrown')) expect(logged).not.toContain(canary);
    expect(logged).toContain('canary-thrown');
    expect(lifecycle.events.map(({ id }) => id)).toEqual((await second.runs.events(run.id)).events.map(({ id }) => id));
    expect(lifecycle.events.find(({ type }) => type === 'tool.started')?.data).toMatchObject({
      key: expect.any(String),
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      recovery: expect.any(String),
    });
  });

  it('STO-8: lists never carry prompts, results or output', async () => {
    const { engine } = await completed();
    const list = JSON.stringify(await engine.runs.list());
    expect(list).not.toContain('hello');
    expect(list).not.toContain('worked');
    expect(list).not.toContain('done');
  });
});
