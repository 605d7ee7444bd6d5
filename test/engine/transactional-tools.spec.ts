import { afterEach, describe, expect, it } from '@jest/globals';
import type { EnteredTransaction, ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import { DEFAULT_RETRY_POLICY } from '../../lib/contracts/policies.js';
import { StoreUnavailableError } from '../../lib/errors/store.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, entryTypes, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';
import { DatabaseConflict, TransactionalStore, type RowWriter } from '../support/transactional-store.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const manager = (context: ToolContext) => (context as ToolContext & EnteredTransaction).manager as RowWriter;

async function over(
  work: (context: ToolContext, entry: number) => unknown,
  options: ToolOptions = {},
  script: Parameters<typeof scriptedModel>[0] = [{ calls: [{ name: 'book' }] }, { text: 'done' }],
) {
  const clock = new ManualClock();
  const store = new TransactionalStore(new MemoryRunStore({ clock: () => clock.now() }));
  const entered: number[] = [];
  const book = tool('book', (_, context) => work(context, entered.push(context.attempt)), {
    recovery: 'transactional',
    transactionTimeoutMs: 5_000,
    ...options,
  });
  const model = scriptedModel(script);
  const other = tool('other', () => 'other');
  const definition = agent(model, [book, other], { modelRetry: DEFAULT_RETRY_POLICY });
  const engine = await engineOver(store, definition, { pollMs: 1_000, pollIdleMs: 1_000 }, clock);
  return { clock, store, engine, model, entered, book };
}

describe('a transactional tool', () => {
  it('JRN-5b: its rows, its result and the next intent are one commit', async () => {
    const { engine, store, clock } = await over((context) => (manager(context).insert('row'), { booked: true }));
    const run = await engine.runs.start(start);
    const rows = (await store.metrics()).journalRows;
    await clock.advance(0);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(store.rows).toEqual(['row']);
    expect(store.rolledBack).toBe(0);
    // Reply and tool.started, then result and model.started, then the end.
    expect((await store.metrics()).journalRows - rows).toBe(3);
    expect(await entryTypes(engine, run.id)).toContain('tool.completed');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no seat');
      },
      { outcome: 'error', error: { message: 'no seat' } },
    ],
    ['returns what has no JSON form', () => new Map(), { error: { code: 'UNSERIALISABLE_RESULT' } }],
  ])('JRN-5b: one that %s has its rows rolled back first, and then its error recorded', async (_, end, expected) => {
    const { engine, store, clock } = await over((context) => (manager(context).insert('row'), end()));
    const run = await engine.runs.start(start);
    await clock.advance(0);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(store.rows).toEqual([]);
    expect(store.rolledBack).toBe(1);
    expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([expected]);
  });

  it('JRN-5b: transactionTimeout rolls back: an ordinary timeout, not uncertain; the late method writes nothing', async () => {
    const release = signal();
    let late: unknown;
    const { engine, store, clock } = await over(async (context) => {
      await release.promise;
      try {
        manager(context).insert('late');
      } catch (error) {
        late = error;
      }
    });
    const run = await engine.runs.start(start);
    await clock.advance(5_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([{ error: { code: 'TOOL_TIMED_OUT' } }]);
    release.resolve();
    await clock.advance(0);
    expect(store.rows).toEqual([]);
    expect(late).toBeInstanceOf(Error);
  });

  it.each([
    [2_000, 5_000, 2_000],
    [5_000, 2_000, 2_000],
    [null, 3_000, 3_000],
  ])(
    'JRN-5b: of a timeout of %s ms and a transactionTimeout of %s ms the smaller counts',
    async (timeoutMs, transactionTimeoutMs, smaller) => {
      const deadlines: (Date | null)[] = [];
      const { engine, store, clock } = await over(
        ({ deadline }) => {
          deadlines.push(deadline);
          return new Promise(() => undefined);
        },
        { timeoutMs, transactionTimeoutMs },
      );
      const run = await engine.runs.start(start);
      await clock.advance(0);
      expect(deadlines).toEqual([new Date(clock.now() + smaller)]);
      await clock.advance(smaller - 1);
      expect(await entriesOf(store, run.id, 'tool.failed')).toEqual([]);
      await clock.advance(1);
      expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([
        { error: { code: 'TOOL_TIMED_OUT', message: expect.stringContaining(`${smaller} ms`) } },
      ]);
      expect(store.rows).toEqual([]);
    },
  );

  it('MOD-8: the time that the database took to give a connection is not the time of the method', async () => {
    const opening = signal();
    const release = signal();
    const deadlines: (Date | null)[] = [];
    const { engine, store, clock, entered } = await over(
      async ({ deadline }) => {
        deadlines.push(deadline);
        await release.promise;
        return 'booked';
      },
      { timeoutMs: 5_000 },
    );
    const open = store.openToolTransaction.bind(store);
    store.openToolTransaction = () => {
      const transaction = open();
      return { ...transaction, begin: () => opening.promise.then(() => transaction.begin()) };
    };
    const run = await engine.runs.start(start);
    // Longer than the method may take altogether.
    await clock.advance(6_000);
    expect(entered).toEqual([]);
    opening.resolve();
    await clock.advance(4_900);
    expect(deadlines).toEqual([new Date(clock.now() - 4_900 + 5_000)]);
    release.resolve();
    await clock.advance(0);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed' });
    expect(await entryTypes(engine, run.id)).toContain('tool.completed');
  });

  it('I10: a transaction that could not be opened in time is never entered, and no business of the model: the run has a pause', async () => {
    const opening = signal();
    const { engine, store, clock, entered } = await over((context) => (manager(context).insert('row'), 'booked'));
    const open = store.openToolTransaction.bind(store);
    store.openToolTransaction = () => {
      const transaction = open();
      return { ...transaction, begin: () => opening.promise.then(() => transaction.begin()) };
    };
    const run = await engine.runs.start(start);
    await clock.advance(20_000);
    expect(await rowOf(store, run.id)).toMatchObject({ status: 'retry_wait' });
    opening.resolve();
    await clock.advance(0);
    expect(entered).toEqual([]);
    await clock.advance(60_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(entered).toHaveLength(1);
    expect(await entriesOf(store, run.id, 'tool.failed')).toEqual([]);
  });

  it.each([
    ['throws', () => Promise.reject(new Error('read ECONNRESET'))],
    ['hangs until its time is up', () => new Promise(() => undefined)],
  ])(
    'I10: a method that %s because the database was lost under it runs again, and the model is told nothing',
    async (_, end) => {
      const { engine, store, clock, entered } = await over((context, entry) => {
        manager(context).insert(`row ${entry}`);
        return entry === 1 ? end() : 'booked';
      });
      store.rollbackFaults = 1;
      const run = await engine.runs.start(start);
      await clock.advance(60_000);
      expect((await engine.runs.get(run.id)).status).toBe('completed');
      expect(entered).toHaveLength(2);
      expect(store.rows).toEqual(['row 2']);
      expect(await entriesOf(store, run.id, 'tool.failed')).toEqual([]);
      expect(engine.worker.status().state).toBe('ready');
    },
  );

  it('decision a-tool-in-a-transaction: a conflict at the commit runs the method again, at most three times, and then gives the run a pause', async () => {
    const { engine, store, clock, entered, model } = await over(
      (context) => (manager(context).insert('row'), 'booked'),
    );
    store.commitFaults.push('conflict', 'conflict', 'conflict', 'conflict');
    const run = await engine.runs.start(start);
    await clock.advance(0);
    expect(entered).toHaveLength(3);
    expect(await rowOf(store, run.id)).toMatchObject({ status: 'retry_wait' });
    expect((await entryTypes(engine, run.id)).slice(-2)).toEqual(['tool.released', 'run.backing_off']);
    await clock.advance(60_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(store.rows).toEqual(['row']);
    // Never the model's business.
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain('deadlock');
    expect(await entriesOf(store, run.id, 'tool.failed')).toEqual([]);
  });

  it('decision a-tool-in-a-transaction: a conflict that the method meets itself is one too', async () => {
    const { engine, store, clock, entered } = await over((context, entry) => {
      manager(context).insert(`row ${entry}`);
      if (entry < 3) throw new DatabaseConflict('serialisation failure');
      return 'booked';
    });
    const run = await engine.runs.start(start);
    await clock.advance(0);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(entered).toHaveLength(3);
    expect(store.rows).toEqual(['row 3']);
    expect(await entriesOf(store, run.id, 'tool.started')).toHaveLength(1);
  });

  it('JRN-5b: a commit whose answer was lost is settled by the journal: the method is not run again', async () => {
    const { engine, store, clock, entered } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.commitFaults.push('lost');
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed', output: 'done' });
    expect(store.rows).toEqual(['row']);
    expect(entered).toHaveLength(1);
    expect(engine.worker.status().state).toBe('ready');
  });

  it('JRN-5b: the journal is asked until it answers', async () => {
    const { engine, store, clock, entered } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.commitFaults.push('lost');
    const run = await engine.runs.start(start);
    store.fail('load', { times: 5 });
    await clock.advance(60_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(entered).toHaveLength(1);
    expect(engine.worker.status().state).toBe('ready');
  });

  it('JRN-5b: a commit that never reached the database is made again later, by running the method again', async () => {
    const { engine, store, clock, entered } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.commitFaults.push('unreachable');
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(store.rows).toEqual(['row']);
    expect(entered).toHaveLength(2);
    expect(engine.worker.status().state).toBe('ready');
  });

  it('JRN-5b: what the database refuses to commit for good is an error of the tool, and no trouble of the engine', async () => {
    const { engine, store, clock, entered } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.commitFaults.push('refused');
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(store.rows).toEqual([]);
    expect(entered).toHaveLength(1);
    expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([
      { outcome: 'error', error: { message: expect.stringContaining('deferred constraint') } },
    ]);
  });

  it('I10: a transaction that cannot be opened lets go of the run for a while, and does not spin', async () => {
    const { engine, store, clock, entered } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.beginFault = () => new StoreUnavailableError('no connection left in the pool');
    const run = await engine.runs.start(start);
    await clock.advance(10_000);
    expect(store.opened).toBeLessThan(20);
    expect(entered).toEqual([]);
    expect((await engine.runs.get(run.id)).phase).toBe('active');
    store.beginFault = null;
    await clock.advance(60_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(store.rows).toEqual(['row']);
  });

  it('JRN-5: after a crash in the middle nothing has happened: it runs again', async () => {
    const inner = new MemoryRunStore();
    const store = new TransactionalStore(inner);
    const started = signal();
    const script = [{ calls: [{ name: 'book' }] }, { text: 'done' }];
    const definition = (work: (context: ToolContext) => unknown) =>
      agent(scriptedModel(script, { place: 'transcript' }), [
        tool('book', (_, context) => work(context), { recovery: 'transactional' }),
      ]);
    const first = await engineOver(
      store,
      definition((context) => {
        manager(context).insert('lost');
        started.resolve();
        return new Promise(() => undefined);
      }),
    );
    const run = await first.runs.start(start);
    await started.promise;
    store.kill();
    first.forget();
    await inner.retireWorker(first.worker.workerId);
    const again = new TransactionalStore(inner);
    const second = await engineOver(
      again,
      definition((context) => (manager(context).insert('row'), 'booked')),
    );
    expect((await second.runs.result(run.id)).status).toBe('completed');
    expect([...store.rows, ...again.rows]).toEqual(['row']);
    expect(await entriesOf(inner, run.id, 'tool.started')).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
  });

  it('RUN-2: one whose run is cancelled while it works is rolled back', async () => {
    const release = signal();
    const entered = signal();
    const { engine, store, clock } = await over(async (context) => {
      manager(context).insert('row');
      entered.resolve();
      await release.promise;
      return 'booked';
    });
    const run = await engine.runs.start(start);
    await entered.promise;
    await engine.runs.cancel(run.id);
    release.resolve();
    await clock.advance(0);
    expect(store.rows).toEqual([]);
    expect(store.rolledBack).toBe(1);
    expect((await engine.runs.get(run.id)).status).toBe('cancelled');
  });

  it('JRN-5a: has the run to itself: calls before it end first, calls after it wait', async () => {
    const order: string[] = [];
    const clock = new ManualClock();
    const store = new TransactionalStore(new MemoryRunStore({ clock: () => clock.now() }));
    const log = (name: string, options: ToolOptions = {}) =>
      tool(
        name,
        async () => {
          order.push(`${name}+`);
          await new Promise((resolve) => setImmediate(resolve));
          order.push(`${name}-`);
          return name;
        },
        options,
      );
    const model = scriptedModel([{ calls: ['a', 'b', 'book', 'c', 'd'].map((name) => ({ name })) }, { text: 'done' }]);
    const tools = [log('a'), log('b'), log('book', { recovery: 'transactional' }), log('c'), log('d')];
    const engine = await engineOver(store, agent(model, tools), {}, clock);
    const run = await engine.runs.start(start);
    await clock.advance(0);
    await clock.advance(0);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(order.slice(0, 4).sort()).toEqual(['a+', 'a-', 'b+', 'b-']);
    expect(order.slice(4, 6)).toEqual(['book+', 'book-']);
    expect(order.slice(6).sort()).toEqual(['c+', 'c-', 'd+', 'd-']);
  });

  it('decision a-shutdown-parks-runs: a shutdown that comes while a transaction is being committed waits for it', async () => {
    const committing = signal();
    const release = signal();
    const { engine, store, clock } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.beforeCommit = () => {
      committing.resolve();
      return release.promise;
    };
    const run = await engine.runs.start(start);
    await committing.promise;
    const drained = engine.stop();
    await clock.advance(0);
    release.resolve();
    await clock.advance(0);
    await drained;
    expect(store.rows).toEqual(['row']);
    expect(await rowOf(store, run.id)).toMatchObject({ status: 'pending', wake: { cause: 'handover' } });
    expect(await entriesOf(store, run.id, 'tool.completed')).toHaveLength(1);
    expect(engine.worker.status().state).toBe('draining');
  });

  it('RUN-6: a deadline that passes while a transaction is being committed does not break the worker', async () => {
    const committing = signal();
    const release = signal();
    const { engine, store, clock } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.beforeCommit = () => {
      committing.resolve();
      return release.promise;
    };
    const run = await engine.runs.start({ ...start, maxDuration: 1_000 });
    await committing.promise;
    await clock.advance(1_000);
    release.resolve();
    await clock.advance(1_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'timed_out' });
    expect(store.rows).toEqual(['row']);
    expect(await entriesOf(store, run.id, 'tool.completed')).toHaveLength(1);
    expect(engine.worker.status().state).toBe('ready');
  });

  it('RUN-6, I10: neither does one that passes while a commit whose answer was lost is looked up (simulation, seed 1070239)', async () => {
    const { engine, store, clock, entered } = await over((context) => (manager(context).insert('row'), 'booked'));
    store.commitFaults.push('lost');
    const lookup = store.hold('load');
    const run = await engine.runs.start({ ...start, maxDuration: 1_000 });
    await lookup.reached;
    await clock.advance(1_000);
    lookup.open();
    await clock.advance(5_000);
    expect(await rowOf(store, run.id)).toMatchObject({ status: 'timed_out', totals: { results: 2 } });
    expect(await entriesOf(store, run.id, 'tool.completed')).toHaveLength(1);
    expect(store.rows).toEqual(['row']);
    expect(entered).toHaveLength(1);
    expect(engine.worker.status().state).toBe('ready');
  });

  it('JRN-5: a tool that was transactional when the model called it, and is manual when it is begun, is begun as manual', async () => {
    const store = new TransactionalStore(new MemoryRunStore());
    const script = [{ calls: [{ name: 'gate' }, { name: 'book' }] }, { text: 'done' }];
    const started = signal();
    const release = signal();
    const gate = tool('gate', () => (started.resolve(), release.promise));
    const definition = (recovery: 'transactional' | 'manual', work: () => unknown, hash: string) =>
      agent(scriptedModel(script, { place: 'transcript' }), [gate, tool('book', work, { recovery })], {
        definitionChange: 'accept',
        hash,
      });
    const first = await engineOver(
      store,
      definition('transactional', () => 'never', 'hash-1'),
    );
    const run = await first.runs.start(start);
    await started.promise;
    const drained = first.stop();
    release.resolve();
    await drained;

    const entered = signal();
    const crashing = new TransactionalStore(store.inner);
    const second = await engineOver(
      crashing,
      definition('manual', () => (entered.resolve(), new Promise(() => undefined)), 'hash-2'),
    );
    await entered.promise;
    expect(await entriesOf(store, run.id, 'tool.started')).toMatchObject([{}, { key: 'r1.m1.t1', recovery: 'manual' }]);
    crashing.kill();
    second.forget();
    await store.retireWorker(second.worker.workerId);
    let again = 0;
    const third = await engineOver(
      store,
      definition('manual', () => ++again, 'hash-2'),
    );
    expect((await third.runs.result(run.id)).status).toBe('needs_attention');
    expect(again).toBe(0);
  });
});
