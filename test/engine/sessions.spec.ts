import { afterEach, describe, expect, it } from '@jest/globals';
import type { Message } from '../../lib/contracts/message.js';
import type { StartOptions } from '../../lib/contracts/run-requests.js';
import { scriptedModel, type ScriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, entryTypes, stopEngines, tool, type TestEngine } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const inSession = (prompt: string, more: Partial<StartOptions> = {}): StartOptions => ({
  agent: 'support',
  sessionId: 's',
  prompt,
  ...more,
});

/** Answers `re: <prompt>` to everything; `hang …` is never answered. */
function echoing(): ScriptedModel {
  return scriptedModel(
    [
      ({ messages }) => {
        const asked = words(messages).at(-1) as string;
        return asked.startsWith('hang') ? { hang: true } : { text: `re: ${asked}` };
      },
    ],
    { place: 'transcript' },
  );
}

function words(messages: readonly Message[]): string[] {
  return messages.map((message) =>
    typeof message.content === 'string'
      ? message.content
      : message.content.map((part) => ('text' in part ? part.text : '')).join(''),
  );
}

async function statuses(engine: TestEngine, ids: string[]): Promise<string[]> {
  return Promise.all(ids.map(async (id) => (await engine.runs.get(id)).status));
}

describe('a serial session', () => {
  it('SUB-5: gives each run the messages of the latest completed run and its history', async () => {
    const model = echoing();
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    for (const prompt of ['one', 'two', 'three']) await engine.runs.startAndWait(inSession(prompt));
    expect(words(model.requests[2]?.messages ?? [])).toEqual(['one', 're: one', 'two', 're: two', 'three']);
    expect(words(await engine.runs.sessionMessages('s'))).toEqual([
      'one',
      're: one',
      'two',
      're: two',
      'three',
      're: three',
    ]);
    expect(await engine.runs.sessionMessages('nothing-yet')).toEqual([]);
  });

  it('SUB-5: a history has the same messages with the same ids for every reader and after a restart (B036)', async () => {
    const store = new MemoryRunStore();
    const engine = await engineOver(store, agent(echoing()));
    const run = await engine.runs.startAndWait(inSession('one'));
    const first = await engine.runs.messages(run.id);
    const fresh = await engineOver(store, agent(echoing()));
    expect(await fresh.runs.messages(run.id)).toEqual(first);
    expect(await fresh.runs.sessionMessages('s')).toEqual(first);
    expect(first.map(({ id }) => id)).toEqual([`${run.id}/r1.i0`, `${run.id}/r1.m1`]);
    const second = await fresh.runs.startAndWait(inSession('two'));
    expect((await fresh.runs.sessionMessages('s')).slice(0, 2)).toEqual(first);
    expect((await fresh.runs.messages(second.id)).every(({ id }) => id?.startsWith(second.id))).toBe(true);
  });

  it('SUB-4: a busy session refuses, naming the run that holds it, and stores nothing', async () => {
    const engine = await engineOver(new MemoryRunStore(), agent(echoing()));
    const head = await engine.runs.start(inSession('hang'));
    await expect(engine.runs.start(inSession('two'))).rejects.toMatchObject({
      code: 'SESSION_BUSY',
      details: { sessionId: 's', runId: head.id },
    });
    expect((await engine.runs.list({ sessionId: 's' })).runs).toHaveLength(1);
    await engine.runs.cancel(head.id);
  });

  it('SUB-4: with enqueue runs wait in line and are executed one at a time, in order of submission', async () => {
    const store = new MemoryRunStore();
    const order: string[] = [];
    let active = 0;
    const model = scriptedModel(
      [
        async ({ messages }) => {
          expect(++active).toBe(1);
          order.push(words(messages).at(-1) as string);
          await new Promise((resolve) => setImmediate(resolve));
          active--;
          return { text: 'ok' };
        },
      ],
      { place: 'transcript' },
    );
    const engine = await engineOver(store, agent(model));
    const prompts = ['a', 'b', 'c', 'd', 'e'];
    const runs = await Promise.all(prompts.map((prompt) => engine.runs.start(inSession(prompt, { enqueue: true }))));
    await Promise.all(runs.map(({ id }) => engine.runs.result(id)));
    expect(order).toEqual(prompts);
    const rows = await Promise.all(runs.map(({ id }) => rowOf(store, id)));
    expect(rows.map(({ sessionOrder }) => sessionOrder)).toEqual([1, 2, 3, 4, 5]);
    expect(words(await engine.runs.sessionMessages('s'))).toEqual(prompts.flatMap((prompt) => [prompt, 'ok']));
  });

  it('SUB-4: order is decided by the store, also when its clock stands still or goes back (B133)', async () => {
    let now = 1_700_000_000_000;
    const store = new MemoryRunStore({ clock: () => now });
    const engine = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const ids: string[] = [];
    for (const prompt of ['a', 'b', 'c']) {
      ids.push((await engine.runs.start(inSession(prompt, { enqueue: true }))).id);
      now -= 2_000;
    }
    for (const next of [1, 2]) {
      await engine.runs.cancel(ids[next - 1] as string);
      expect((await statuses(engine, ids))[next]).toBe('pending');
    }
  });

  it.each([0, -2_000])(
    'STO-8: so are transcripts and pages, with a clock that moves %i ms from call to call (B133)',
    async (step) => {
      let now = 1_700_000_000_000;
      const store = new MemoryRunStore({ clock: () => (now += step) });
      const engine = await engineOver(store, agent(echoing()), { leaseMs: 10 ** 9 });
      const ids: string[] = [];
      for (const prompt of ['a', 'b', 'c', 'd', 'e']) ids.push((await engine.runs.startAndWait(inSession(prompt))).id);
      expect(words(await engine.runs.sessionMessages('s'))).toEqual(
        ['a', 'b', 'c', 'd', 'e'].flatMap((prompt) => [prompt, `re: ${prompt}`]),
      );
      for (let look = 0; look < 2; look++) {
        const seen: string[] = [];
        for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
          const page = await engine.runs.list({ limit: 2, ...(after !== undefined && { after }) });
          seen.push(...page.runs.map(({ id }) => id));
          after = page.nextCursor;
        }
        expect([...seen].sort()).toEqual([...ids].sort());
      }
    },
  );

  it('SUB-4: tells who a queued run waits behind, and when its turn has come', async () => {
    const engine = await engineOver(new MemoryRunStore(), agent(echoing()));
    const head = await engine.runs.start(inSession('hang'));
    const next = await engine.runs.start(inSession('two', { enqueue: true }));
    expect(next).toMatchObject({ status: 'queued', phase: 'queued', attempt: 0 });
    await engine.runs.cancel(head.id);
    expect(await engine.runs.result(next.id)).toMatchObject({ status: 'completed' });
    const events = (await engine.runs.events(next.id)).events;
    expect(events.slice(0, 4)).toMatchObject([
      { type: 'run.submitted' },
      { type: 'run.queued', data: { behindRunId: head.id } },
      { type: 'run.dequeued', data: { afterRunId: head.id } },
      { type: 'run.started', data: { cause: 'submitted', attempt: 1 } },
    ]);
  });

  it('SUB-4: a failed or cancelled predecessor frees the session and adds no history', async () => {
    const model = scriptedModel(
      [({ messages }) => (words(messages).at(-1) === 'bad' ? { fail: { status: 400 } } : { text: 'ok' })],
      { place: 'transcript' },
    );
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    await engine.runs.startAndWait(inSession('good'));
    expect(await engine.runs.startAndWait(inSession('bad'))).toMatchObject({ status: 'failed' });
    await engine.runs.startAndWait(inSession('again'));
    expect(words(model.requests.at(-1)?.messages ?? [])).toEqual(['good', 'ok', 'again']);
  });

  it('SUB-5: the history of a waiting run is fixed when it reaches the head, not when it was submitted', async () => {
    const store = new MemoryRunStore();
    const release = signal();
    const model = scriptedModel([{ text: 'first', after: release.promise }, { text: 'second' }]);
    const engine = await engineOver(store, agent(model));
    const head = await engine.runs.start(inSession('one'));
    const next = await engine.runs.start(inSession('two', { enqueue: true }));
    expect(await rowOf(store, next.id)).toMatchObject({ historyCaptured: false, historyRunId: null });
    release.resolve();
    await engine.runs.result(next.id);
    expect(await rowOf(store, next.id)).toMatchObject({ historyCaptured: true, historyRunId: head.id });
    expect(words(model.requests[1]?.messages ?? [])).toEqual(['one', 'first', 'two']);
  });

  it('SUB-4: cancelling a run in line takes it out, and those behind it keep their order', async () => {
    const engine = await engineOver(new MemoryRunStore(), agent(echoing()));
    const head = await engine.runs.start(inSession('hang'));
    const [, cancelled, last] = [
      head,
      ...(await Promise.all(['b', 'c'].map((p) => engine.runs.start(inSession(p, { enqueue: true }))))),
    ];
    await engine.runs.cancel((cancelled as { id: string }).id);
    expect(await statuses(engine, [head.id, (last as { id: string }).id])).toEqual(['running', 'queued']);
    await engine.runs.cancel(head.id);
    expect((await engine.runs.result((last as { id: string }).id)).status).toBe('completed');
  });

  it('SUB-4: cancelling the head while nobody executes it lets the next run go on at once', async () => {
    const store = new MemoryRunStore();
    const engine = await engineOver(
      store,
      agent(echoing(), [], { maxTurns: 20 }),
      // Polls would hide whether anybody was woken.
      { pollMs: 60_000, pollIdleMs: 60_000 },
    );
    engine.worker.pause();
    const head = await engine.runs.start(inSession('one'));
    const next = await engine.runs.start(inSession('two', { enqueue: true }));
    engine.worker.resume();
    await engine.runs.cancel(head.id);
    expect(await engine.runs.result(next.id, { timeout: '2s' })).toMatchObject({ status: 'completed' });
  });

  it('SUB-4: a suspended run holds its session but no slot', async () => {
    const engine = await engineOver(
      new MemoryRunStore(),
      agent(scriptedModel([{ calls: [{ name: 'gated' }] }, { text: 'other' }]), [
        tool('gated', () => 'done', { approval: 'rule', asks: () => ({}) }),
      ]),
      { maxConcurrentRuns: 1 },
    );
    const head = await engine.runs.startAndWait(inSession('one'));
    expect(head.status).toBe('waiting');
    await expect(engine.runs.start(inSession('two'))).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    expect(engine.worker.status().activeRuns).toBe(0);
    expect(await engine.runs.startAndWait({ agent: 'support', prompt: 'elsewhere' })).toMatchObject({
      status: 'completed',
    });
  });

  it('SUB-4: ten sessions go on side by side', async () => {
    const model = echoing();
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    const runs = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        Promise.all(
          ['x', 'y'].map((prompt) =>
            engine.runs.start(inSession(`${prompt}${n}`, { sessionId: `s-${n}`, enqueue: true })),
          ),
        ),
      ),
    );
    for (const [n, [first, second]] of runs.entries()) {
      await engine.runs.result(first?.id as string);
      await engine.runs.result(second?.id as string);
      expect(words(await engine.runs.sessionMessages(`s-${n}`))).toEqual([`x${n}`, `re: x${n}`, `y${n}`, `re: y${n}`]);
    }
  });

  it('I6: a run that crashed keeps its place: the run behind it waits for its recovery (B005)', async () => {
    const store = new MemoryRunStore();
    const first = await engineOver(store, agent(echoing()));
    const head = await first.runs.start(inSession('hang'));
    const next = await first.runs.start(inSession('two', { enqueue: true }));
    await store.retireWorker(first.worker.workerId);
    const second = await engineOver(store, agent(scriptedModel([{ text: 'one' }, { text: 'two' }])));
    expect((await second.runs.result(head.id)).output).toBe('one');
    expect((await second.runs.result(next.id)).output).toBe('two');
    expect((await entryTypes(second, next.id)).slice(0, 3)).toEqual(['run.submitted', 'run.queued', 'run.dequeued']);
  });
});

describe('a parallel session', () => {
  const parallel = (model: ScriptedModel) => agent(model, [], { sessionMode: 'parallel' });

  it('SUB-4a: does not queue', async () => {
    const engine = await engineOver(new MemoryRunStore(), parallel(echoing()));
    const runs = await Promise.all(
      ['hang 1', 'hang 2', 'hang 3'].map((prompt) => engine.runs.start(inSession(prompt))),
    );
    expect(runs.map(({ status }) => status)).toEqual(['running', 'running', 'running']);
    await Promise.all(runs.map(({ id }) => engine.runs.cancel(id)));
  });

  it('SUB-4a: each run takes its history at its first claim, and what others do afterwards does not change it', async () => {
    const store = new MemoryRunStore();
    const release = signal();
    const model = scriptedModel(
      [
        ({ messages }) => {
          const asked = words(messages).at(-1) as string;
          return asked.startsWith('slow') ? { calls: [{ name: 'wait' }] } : { text: `re: ${asked}` };
        },
        { text: 're: slow' },
      ],
      { place: 'transcript' },
    );
    const engine = await engineOver(
      store,
      agent(model, [tool('wait', () => release.promise.then(() => 'waited'))], { sessionMode: 'parallel' }),
    );
    await engine.runs.startAndWait(inSession('zero'));
    const slow = await engine.runs.start(inSession('slow'));
    await engine.runs.startAndWait(inSession('quick'));
    release.resolve();
    await engine.runs.result(slow.id);
    const ofSlow = model.requests.filter(({ messages }) => words(messages).includes('slow'));
    expect(words(ofSlow.at(-1)?.messages ?? []).filter((word) => word !== '')).toEqual(['zero', 're: zero', 'slow']);
    // In order of completion.
    expect(words(await engine.runs.sessionMessages('s')).filter((word) => word !== '')).toEqual([
      'zero',
      're: zero',
      'quick',
      're: quick',
      'slow',
      're: slow',
    ]);
  });

  it('SUB-4a: a run that waited for a slot takes the history of the moment it is claimed', async () => {
    const store = new MemoryRunStore();
    const model = echoing();
    const engine = await engineOver(store, parallel(model));
    engine.worker.pause();
    const late = await engine.runs.start(inSession('late'));
    expect(await rowOf(store, late.id)).toMatchObject({ status: 'pending', historyCaptured: false });
    const other = await engineOver(store, { ...parallel(echoing()), name: 'other' });
    const quick = await other.runs.startAndWait(inSession('quick', { agent: 'other' }));
    engine.worker.resume();
    await engine.runs.result(late.id);
    expect(words(model.requests[0]?.messages ?? [])).toEqual(['quick', 're: quick', 'late']);
    expect(await rowOf(store, late.id)).toMatchObject({ historyCaptured: true, historyRunId: quick.id });
  });

  it('SUB-4a: the modes do not mix within one session', async () => {
    const engine = await engineOver(
      new MemoryRunStore(),
      [agent(echoing()), agent(echoing(), [], { name: 'many', sessionMode: 'parallel' })],
      { worker: false },
    );
    await engine.runs.start(inSession('one'));
    await expect(engine.runs.start(inSession('two', { agent: 'many', enqueue: true }))).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      details: { fields: [{ field: 'sessionId' }] },
    });
  });
});

describe('the history of a session', () => {
  it('CTX-1: of 100 runs is read by as few statements as that of ten, by every reader', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const engine = await engineOver(store, agent(echoing()));
    const statements = async (read: () => Promise<unknown>): Promise<number> => {
      const count = () =>
        (['load', 'list', 'readJournal', 'follow', 'session'] as const).map((one) => store.count(one));
      const before = count();
      await read();
      return count().reduce((sum, after, index) => sum + after - (before[index] as number), 0);
    };
    const asked: number[] = [];
    for (let n = 1; n <= 100; n++) {
      if (n !== 10 && n !== 100) await engine.runs.startAndWait(inSession(`${n}`));
      else {
        let run = { id: '' };
        asked.push(await statements(async () => (run = await engine.runs.start(inSession(`${n}`)))));
        await engine.runs.result(run.id);
      }
    }
    const told = await statements(async () => {
      const history = words(await engine.runs.sessionMessages('s'));
      expect(history).toEqual(Array.from({ length: 100 }, (_, index) => [`${index + 1}`, `re: ${index + 1}`]).flat());
    });
    expect(asked).toEqual([3, 3]);
    expect(told).toBe(3);
  });

  it('CTX-1: is not cut where an earlier journal cannot be read: nobody goes on without it', async () => {
    const store = new MemoryRunStore();
    const engine = await engineOver(store, agent(echoing()));
    const { id } = await engine.runs.startAndWait(inSession('one'));
    await engine.runs.startAndWait(inSession('two'));
    const rows = store['tables'].journals.get(id) ?? [];
    rows.splice(0, 1);
    await expect(engine.runs.sessionMessages('s')).rejects.toMatchObject({
      code: 'JOURNAL_CORRUPT',
      details: { runId: id },
    });
  });

  it('MOD-9: calls in it are never executed again, and their ids stay unique with those to come (B077)', async () => {
    const executed: unknown[] = [];
    const store = new MemoryRunStore();
    const look = tool('look', ({ n }) => (executed.push(n), { n }));
    const script = (n: number) => [{ calls: [{ name: 'look', args: { n }, id: 'look:0' }] }, { text: `saw ${n}` }];
    const first = await engineOver(store, agent(scriptedModel(script(1)), [look]));
    await first.runs.startAndWait(inSession('one'));
    const model = scriptedModel(script(2), { strict: ['results', 'ids'] });
    const second = await engineOver(store, agent(model, [look]));
    const run = await second.runs.startAndWait(inSession('two'));
    expect(run).toMatchObject({ status: 'completed', output: 'saw 2' });
    expect(executed).toEqual([1, 2]);
    const ids = (model.requests.at(-1)?.messages ?? []).flatMap((message) =>
      message.role === 'assistant' ? message.content.flatMap((part) => (part.type === 'tool-call' ? [part] : [])) : [],
    );
    expect(ids.map(({ originalCallId }) => originalCallId)).toEqual([undefined, 'look:0']);
    expect(new Set(ids.map(({ callId }) => callId)).size).toBe(2);
    expect(await entriesOf(store, run.id, 'tool.completed')).toHaveLength(1);
  });
});
