import { describe, expect, it } from '@jest/globals';
import type { AppendRequest, ToolTransaction } from '../../../lib/contracts/ports/run-store.port.js';
import type { RunTotals } from '../../../lib/contracts/run.js';
import { RunJournal, type StepEntries } from '../../../lib/engine/journal/run-journal.js';
import { FencedError, StoreUnavailableError } from '../../../lib/errors/store.errors.js';
import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';
import { claim, note, notesOf, running, totalsOf } from '../../../packages/contract/lib/scenario.js';
import { FailingStore } from '../../support/failing-store.js';
import { journalOf, rowOf } from '../../support/journal-of.js';
import { ManualClock, rest } from '../../support/manual-clock.js';
import { signal } from '../../support/signal.js';

/** Of a run that stands at sequence 2: submitted, started. */
async function journalOver() {
  const clock = new ManualClock();
  const inner = new MemoryRunStore({ clock: () => clock.now() });
  const store = new FailingStore(inner);
  const run = await running(inner);
  const landed: [number, number][] = [];
  const may = { act: true };
  const journal = new RunJournal(
    { store, clock, ids: { id: () => 'id', random: () => 1 } },
    { runId: run.id, attempt: 1 },
    run.sequence,
    {
      onLanded: (first, entries) => void landed.push([first, entries.length]),
      canStartEffects: () => may.act,
      isOver: () => false,
    },
  );
  return { clock, inner, store, journal, landed, may, runId: run.id };
}

function step(
  results: string[],
  intents: string[] = [],
  totals: [RunTotals, RunTotals] = [totalsOf(1), totalsOf(1)],
): StepEntries {
  return {
    results: results.map(note),
    intents: intents.map(note),
    totalsAfterResults: totals[0],
    totalsAfterIntents: totals[1],
  };
}

describe("a running attempt's journal", () => {
  it('JRN-3: numbers what it writes behind what is there, and tells only what is durable', async () => {
    const { journal, landed, inner, runId, store } = await journalOver();
    const gate = store.hold('append', { after: true });
    const appended = journal.append(step(['a'], ['b']));
    await gate.reached;
    expect(landed).toEqual([]);
    gate.open();
    await expect(appended).resolves.toBe('all');
    expect(landed).toEqual([[3, 2]]);
    expect(journal.sequence).toBe(4);
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a', 'b']);
  });

  it('RUN-6: totals that wait for their turn do not count what is not begun after all (simulation, seed 1094)', async () => {
    const { journal, store, may, clock } = await journalOver();
    const [before, begun] = [totalsOf(1), { ...totalsOf(1), turn: 2 }];
    store.fail('append', { times: 1 });
    const appended = journal.append(step(['a'], ['b'], [before, begun]));
    const waiting = journal.totalsInTurn(begun);
    may.act = false;
    await clock.advance(1_000);
    await expect(appended).resolves.toBe('results');
    expect(waiting()).toEqual(before);
    expect(journal.totalsInTurn(before)()).toEqual(before);
  });

  it('RUN-6: nor what a refused transaction of a tool would have counted (simulation, seed 11053)', async () => {
    const { journal } = await journalOver();
    const refusing = {
      commit: () => Promise.reject(new StoreUnavailableError('gone')),
      rollback: () => Promise.resolve(),
    } as unknown as ToolTransaction;
    const after = { ...totalsOf(2), turn: 3 };
    const refused = journal.commitThrough(refusing, step(['a'], ['b'], [totalsOf(2), after]));
    const waiting = journal.totalsInTurn(after);
    await expect(refused).rejects.toThrow('gone');
    expect(waiting()).toEqual({ ...totalsOf(2), turn: 2, results: 1 });
  });

  it('JRN-3: has one append in flight; what comes meanwhile shares the next one, in order (decision one-append-in-flight)', async () => {
    const { journal, store, inner, runId } = await journalOver();
    const gate = store.hold('append');
    const first = journal.append(step(['a']));
    await gate.reached;
    const later = ['b', 'c', 'd'].map((name) => journal.append(step([name])));
    gate.open();
    await Promise.all([first, ...later]);
    expect(store.count('append')).toBe(2);
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a', 'b', 'c', 'd']);
  });

  it('I10: offers a result again until the store takes it, and writes it once (decision a-result-in-hand-is-offered-again)', async () => {
    const { journal, store, clock, inner, runId } = await journalOver();
    store.fail('append', { times: 5 });
    const appended = journal.append(step(['a']));
    await clock.advance(60_000);
    await expect(appended).resolves.toBe('all');
    expect(store.count('append')).toBe(6);
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a']);
  });

  it('I10: an append whose answer was lost is not written a second time', async () => {
    const { journal, store, clock, inner, runId, landed } = await journalOver();
    store.fail('append', { lost: true, times: 2 });
    const appended = journal.append(step(['a'], ['b']));
    await clock.advance(10_000);
    await expect(appended).resolves.toBe('all');
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a', 'b']);
    expect(landed).toEqual([[3, 2]]);
  });

  it('I10: waits longer from try to try, at most 2 s', async () => {
    const { journal, store, clock } = await journalOver();
    store.fail('append', { times: Number.POSITIVE_INFINITY });
    void journal.append(step(['a']));
    const waits: (number | null)[] = [];
    for (let tries = 0; tries < 8; tries++) {
      await rest();
      waits.push(clock.nextIn);
      await clock.advance(clock.nextIn ?? 0);
    }
    expect(waits).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
  });

  it('OWN-3: intents are not offered any more once the attempt may not act; its results are', async () => {
    const { journal, store, clock, inner, runId, may } = await journalOver();
    store.fail('append', { times: 1 });
    may.act = false;
    const appended = journal.append(step(['a'], ['b'], [totalsOf(1), totalsOf(9)]));
    await clock.advance(1_000);
    await expect(appended).resolves.toBe('results');
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a']);
    expect((await rowOf(inner, runId)).totals).toEqual(totalsOf(1));
    expect(journal.sequence).toBe(3);
  });

  it('OWN-3: intents alone that may not be acted upon are dropped without a write', async () => {
    const { journal, store, clock, inner, runId, may } = await journalOver();
    store.fail('append');
    may.act = false;
    const appended = journal.append(step([], ['b']));
    await clock.advance(1_000);
    await expect(appended).resolves.toBe('results');
    expect(notesOf(await journalOf(inner, runId))).toEqual([]);
  });

  it('I10: intents that landed with a lost answer are known to have landed, although the attempt may not act any more', async () => {
    const { journal, store, clock, inner, runId, may } = await journalOver();
    store.fail('append', { lost: true });
    may.act = false;
    const appended = journal.append(step(['a'], ['b']));
    await clock.advance(1_000);
    await expect(appended).resolves.toBe('all');
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a', 'b']);
    expect(journal.sequence).toBe(4);
  });

  it('I10: while nobody can say whether the intents landed, nothing is left out of the batch', async () => {
    const { journal, store, clock, inner, runId, may } = await journalOver();
    store.fail('append', { lost: true });
    store.fail('load', { times: 1 });
    may.act = false;
    const appended = journal.append(step(['a'], ['b']));
    await clock.advance(1_000);
    await expect(appended).resolves.toBe('all');
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a', 'b']);
  });

  it('I10: a batch that lands late, after it was looked for, is recognised even while the store stays hard to reach', async () => {
    const { journal, store, clock, inner, runId, may } = await journalOver();
    // The first try times out for us and lands a moment later, when the attempt has already decided to leave the intents out.
    store.fail('append', { times: 1 });
    may.act = false;
    const gate = store.hold('append');
    const appended = journal.append(step(['a'], ['b']));
    await clock.advance(1_000);
    await gate.reached;
    await inner.append({ runId, attempt: 1, firstSequence: 3, entries: [note('a'), note('b')], totals: totalsOf(1) });
    store.fail('load', { times: 1 });
    gate.open();
    await clock.advance(5_000);
    await expect(appended).resolves.toBe('all');
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a', 'b']);
    expect(journal.sequence).toBe(4);
  });

  it('OWN-2: an attempt that was taken over writes nothing and learns it, with everything that waited behind it', async () => {
    const { journal, store, inner, runId } = await journalOver();
    await inner.retireWorker('worker-1');
    expect(await claim(inner, runId, 'worker-2')).toBe(2);
    const before = (await journalOf(inner, runId)).length;
    const gate = store.hold('append');
    const first = journal.append(step(['a']));
    await gate.reached;
    const second = journal.append(step(['b']));
    gate.open();
    await expect(first).rejects.toBeInstanceOf(FencedError);
    await expect(second).rejects.toBeInstanceOf(FencedError);
    expect(await journalOf(inner, runId)).toHaveLength(before);
  });

  it('JRN-3: a transaction of the attempt takes its turn among the appends: those before it have landed, later ones wait', async () => {
    const { journal, store, inner, runId } = await journalOver();
    const order: string[] = [];
    const gate = store.hold('append');
    const first = journal.append(step(['a'])).then(() => order.push('a'));
    await gate.reached;
    const transacting = signal();
    const alone = journal.alone(async () => {
      expect(journal.sequence).toBe(3);
      await transacting.promise;
      await inner.append({ runId, attempt: 1, firstSequence: 4, entries: [note('b')], totals: totalsOf(1) });
      journal.landed([note('b')]);
      order.push('b');
      return 'told';
    });
    const last = journal.append(step(['c'])).then(() => order.push('c'));
    gate.open();
    await first;
    await rest();
    expect(order).toEqual(['a']);
    transacting.resolve();
    await expect(alone).resolves.toBe('told');
    await last;
    expect(order).toEqual(['a', 'b', 'c']);
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a', 'b', 'c']);
  });

  it('JRN-3: a transaction that is refused does not hold up what waits behind it', async () => {
    const { journal, inner, runId } = await journalOver();
    const refused = journal.alone(() => Promise.reject(new Error('no')));
    const after = journal.append(step(['a']));
    await expect(refused).rejects.toThrow('no');
    await after;
    expect(notesOf(await journalOf(inner, runId))).toEqual(['a']);
  });

  it("JRN-5b: a tool's commit that is refused leaves the sequence where it was", async () => {
    const { journal, landed } = await journalOver();
    const transaction = transactionOver(() => Promise.reject(new StoreUnavailableError('gone')));
    await expect(journal.commitThrough(transaction, step(['b']))).rejects.toThrow('gone');
    expect(journal.sequence).toBe(2);
    expect(landed).toEqual([]);
  });
});

function transactionOver(commit: (request: AppendRequest) => Promise<void>): ToolTransaction {
  return {
    begin: () => Promise.resolve({}),
    commit,
    rollback: () => Promise.resolve(),
    isConflict: () => false,
  };
}
