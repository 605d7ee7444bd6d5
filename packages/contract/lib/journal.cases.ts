import assert from 'node:assert/strict';
import type { JsonValue } from 'nestjs-agent-runs';
import {
  appendNotes,
  beat,
  change,
  claim,
  expire,
  journal,
  loaded,
  note,
  notesOf,
  refusedWith,
  running,
  sameJson,
  submit,
  totalsOf,
  upTo,
  whileWriting,
} from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

/** The journal of a run is one gapless line, written by one attempt at a time, and every reader sees a beginning of it. */
export const journalCases: readonly StoreCase[] = [
  storeCase(
    'EVT-1',
    'entries are numbered 1, 2, 3 … across creation, appends and transitions',
    async ({ store, reopen }) => {
      await running(store);
      await appendNotes(store, 'run-1', 1, ['a', 'b']);
      await appendNotes(store, 'run-1', 1, ['c']);
      await change(store, 'run-1', { recoveries: 1 }, [note('d'), note('e')]);
      await appendNotes(store, 'run-1', 1, ['f']);
      for (const open of [() => store, reopen]) {
        const reader = await open();
        const entries = await journal(reader, 'run-1');
        assert.deepEqual(
          entries.map(({ sequence }) => sequence),
          upTo(8),
        );
        assert.deepEqual(notesOf(entries), ['a', 'b', 'c', 'd', 'e', 'f']);
        assert.equal((await loaded(reader, 'run-1')).sequence, 8);
      }
    },
  ),

  storeCase('EVT-1', 'more than ten entries come in the order of numbers, not of texts', async ({ store }) => {
    await running(store);
    for (const n of upTo(12)) await appendNotes(store, 'run-1', 1, [n]);
    await appendNotes(store, 'run-1', 1, upTo(110));
    assert.deepEqual(notesOf(await journal(store, 'run-1')), [...upTo(12), ...upTo(110)]);
  }),

  storeCase('EVT-1', 'a journal is read from any cursor in pages of any size', async ({ store }) => {
    await running(store);
    let given = 2;
    for (const size of [1, 3, 7, 1, 5]) {
      await appendNotes(store, 'run-1', 1, upTo(size));
      given += size;
    }
    const all = await journal(store, 'run-1');
    assert.equal(all.length, given);
    for (const limit of [1, 2, 3, 4, 100]) {
      sameJson(await journal(store, 'run-1', limit), all, `pages of ${limit}`);
    }
    for (const after of [0, 1, 4, 6, given - 1]) {
      const page = await store.readJournal('run-1', after, 3);
      sameJson(page?.entries, all.slice(after, after + 3), `three entries after ${after}`);
      assert.equal(page?.run.sequence, given, 'the run is shown as a whole');
    }
    assert.deepEqual((await store.readJournal('run-1', given, 3))?.entries, []);
  }),

  storeCase(
    'EVT-1',
    'a reader beside a writer sees a gapless beginning, and the run that belongs to it',
    async ({ store }) => {
      await running(store);
      let last = 0;
      await whileWriting(
        async () => {
          for (const n of upTo(25)) {
            const firstSequence = 3 + (n - 1) * 2;
            const entries = [note(n), note(-n)];
            await store.append({ runId: 'run-1', attempt: 1, firstSequence, entries, totals: totalsOf(n) });
          }
        },
        async () => {
          const page = await store.readJournal('run-1', 0, 1_000);
          assert.ok(page);
          assert.deepEqual(
            page.entries.map(({ sequence }) => sequence),
            upTo(page.entries.length),
            'no gap',
          );
          assert.ok(page.entries.length >= last, 'what was there stays there');
          last = page.entries.length;
          assert.equal(page.run.sequence, last, 'the run stands where its journal ends');
          assert.equal(page.run.totals.results, (last - 2) / 2, 'its totals are those of the last entry');
        },
      );
      assert.equal((await loaded(store, 'run-1')).sequence, 52);
    },
  ),

  storeCase(
    'STR-S3',
    'several journals are followed by one read, each from its own position',
    async ({ store, reopen }) => {
      const ids = ['run-1', 'run-2', 'run-3'];
      for (const id of ids) await running(store, { id, requestScope: `run:${id}` });
      await appendNotes(store, 'run-1', 1, ['a', 'b']);
      await appendNotes(store, 'run-1', 1, ['c']);
      await appendNotes(store, 'run-2', 1, ['d']);
      const positions = [
        { runId: 'run-3', after: 2 },
        { runId: 'run-2', after: 0 },
        { runId: 'run-1', after: 4 },
        { runId: 'nobody', after: 0 },
      ];
      for (const open of [() => store, reopen]) {
        const reader = await open();
        const news = await reader.follow(positions, 100);
        assert.deepEqual(
          news.map(({ runId, status, isComplete }) => [runId, status, isComplete]).sort(),
          [
            ['run-1', 'running', true],
            ['run-2', 'running', true],
          ],
          'runs without anything new are left out',
        );
        for (const { runId, entries } of news) {
          const { after } = positions.find((one) => one.runId === runId) as { after: number };
          sameJson(entries, (await journal(reader, runId)).slice(after), `the entries of ${runId} after ${after}`);
        }
      }
    },
  ),

  storeCase('STR-S3', 'what is new comes with the status that the run has then', async ({ store }) => {
    await running(store);
    await change(store, 'run-1', { status: 'cancelled', finishedAt: 1 }, [note('a')]);
    const [news] = await store.follow([{ runId: 'run-1', after: 2 }], 100);
    assert.equal(news?.status, 'cancelled');
    assert.deepEqual(await store.follow([{ runId: 'run-1', after: 3 }], 100), []);
    assert.deepEqual(await store.follow([], 100), []);
  }),

  storeCase(
    'STR-S3',
    'what a limit leaves out comes with the next reads, and is said to be missing',
    async ({ store }) => {
      for (const id of ['run-1', 'run-2']) {
        await running(store, { id, requestScope: `run:${id}` });
        for (const n of upTo(4)) await appendNotes(store, id, 1, [n, -n]);
      }
      for (const limit of [1, 2, 3, 5, 100]) {
        const after: Record<string, number> = { 'run-1': 0, 'run-2': 0 };
        for (let reads = 0; ; reads += 1) {
          assert.ok(reads < 50, `reads of ${limit} come to an end`);
          const positions = Object.entries(after).map(([runId, at]) => ({ runId, after: at }));
          const news = await store.follow(positions, limit);
          if (news.length === 0) break;
          for (const { runId, entries, isComplete } of news) {
            const at = after[runId] as number;
            assert.deepEqual(
              entries.map(({ sequence }) => sequence),
              entries.map((_, index) => at + index + 1),
              'no gap and no repetition',
            );
            after[runId] = at + entries.length;
            if (isComplete) assert.equal(after[runId], 10, 'what is complete ends where the journal ends');
          }
        }
        assert.deepEqual(after, { 'run-1': 10, 'run-2': 10 });
      }
    },
  ),

  storeCase('STO-1', 'an append moves sequence and totals, and no other part of the run', async ({ store, wait }) => {
    const before = await running(store);
    await wait(3);
    await appendNotes(store, 'run-1', 1, ['a', 'b'], totalsOf(7));
    const after = await loaded(store, 'run-1');
    sameJson(after, { ...before, sequence: before.sequence + 2, totals: totalsOf(7) }, 'the run after an append');
  }),

  storeCase(
    'STO-1',
    'the same batch again changes nothing, even when others stand behind it',
    async ({ store, reopen }) => {
      await running(store);
      const request = {
        runId: 'run-1',
        attempt: 1,
        firstSequence: 3,
        entries: [note('a'), note({ z: 1, a: [null] })],
        totals: totalsOf(1),
      };
      await store.append(request);
      await store.append(structuredClone(request));
      await appendNotes(store, 'run-1', 1, ['c'], totalsOf(2));
      await store.append(structuredClone(request));
      await (await reopen()).append(structuredClone(request));
    },
  ),

  storeCase('STO-1', 'a repeated batch is stored once', async ({ store }) => {
    await running(store);
    const request = {
      runId: 'run-1',
      attempt: 1,
      firstSequence: 3,
      entries: [note('a'), note('b')],
      totals: totalsOf(1),
    };
    await Promise.all(upTo(6).map(() => store.append(structuredClone(request))));
    await store.append(structuredClone(request));
    assert.deepEqual(notesOf(await journal(store, 'run-1')), ['a', 'b']);
    assert.equal((await loaded(store, 'run-1')).totals.results, 1);
  }),

  storeCase('STO-1', 'other entries at a place that is taken are refused, and the first stay', async ({ store }) => {
    await running(store);
    await appendNotes(store, 'run-1', 1, ['a', 'b'], totalsOf(1));
    const others: [number, JsonValue[]][] = [
      [3, ['x', 'y']],
      [3, ['a', 'b', 'c']],
      [4, ['x']],
      [1, ['x']],
      [2, ['x', 'y', 'z']],
    ];
    for (const [firstSequence, values] of others) {
      await refusedWith(
        'SEQUENCE_CONFLICT',
        store.append({ runId: 'run-1', attempt: 1, firstSequence, entries: values.map(note), totals: totalsOf(9) }),
        `${JSON.stringify(values)} at ${firstSequence}`,
      );
    }
    assert.deepEqual(notesOf(await journal(store, 'run-1')), ['a', 'b']);
    assert.equal((await loaded(store, 'run-1')).totals.results, 1);
  }),

  storeCase('STO-1', 'an append that would leave a gap is refused', async ({ store }) => {
    await running(store);
    for (const firstSequence of [4, 5, 100]) {
      await refusedWith(
        'SEQUENCE_CONFLICT',
        store.append({ runId: 'run-1', attempt: 1, firstSequence, entries: [note('x')], totals: totalsOf(0) }),
        `an append at ${firstSequence} behind 2 entries`,
      );
    }
    await appendNotes(store, 'run-1', 1, ['a']);
    assert.deepEqual(notesOf(await journal(store, 'run-1')), ['a']);
  }),

  storeCase('STO-1', 'of different batches for one place at once one stands', async ({ store }) => {
    await running(store);
    const results = await Promise.allSettled(
      upTo(6).map((n) =>
        store.append({
          runId: 'run-1',
          attempt: 1,
          firstSequence: 3,
          entries: [note(n), note(n)],
          totals: totalsOf(n),
        }),
      ),
    );
    const won = results.flatMap(({ status }, index) => (status === 'fulfilled' ? [index + 1] : []));
    assert.equal(won.length, 1, 'one batch is accepted');
    for (const result of results) {
      if (result.status === 'rejected')
        await refusedWith('SEQUENCE_CONFLICT', Promise.reject(result.reason), 'a loser');
    }
    assert.deepEqual(notesOf(await journal(store, 'run-1')), [won[0], won[0]]);
    assert.equal((await loaded(store, 'run-1')).totals.results, won[0]);
  }),

  storeCase('OWN-2', 'nobody appends to a run that is not running, whatever its attempt', async ({ store }) => {
    const append = (runId: string, attempt: number) =>
      store.append({ runId, attempt, firstSequence: 2, entries: [note('x')], totals: totalsOf(0) });
    await refusedWith('FENCED', append('nothing', 1), 'an append to no run');
    await submit(store, { id: 'run-1' });
    await refusedWith('FENCED', append('run-1', 0), 'an append to a run never claimed');
    for (const status of [
      'queued',
      'retry_wait',
      'waiting',
      'interrupted',
      'needs_attention',
      'completed',
      'cancelled',
    ] as const) {
      await submit(store, { id: `run-${status}`, status, attempt: 1, owner: 'worker-1' });
      await refusedWith('FENCED', append(`run-${status}`, 1), `an append to a ${status} run`);
      assert.equal((await loaded(store, `run-${status}`)).sequence, 1);
    }
  }),

  storeCase(
    'STO-1',
    'a batch that has landed is still known as such when its run was taken away meanwhile',
    async (subject) => {
      const { store } = subject;
      const batch = (runId: string, value: string) => ({
        runId,
        attempt: 1,
        firstSequence: 3,
        entries: [note(value)],
        totals: totalsOf(1),
      });
      for (const id of ['run-cancelled', 'run-taken']) {
        await running(store, { id });
        await store.append(batch(id, 'mine'));
      }
      await change(store, 'run-cancelled', { status: 'cancelled' }, [note('cancelled')]);
      await expire(subject, 'worker-1');
      await beat(store, 'worker-2');
      assert.equal(await claim(store, 'run-taken', 'worker-2'), 2);
      for (const id of ['run-cancelled', 'run-taken']) {
        const before = await journal(store, id);
        await store.append(batch(id, 'mine'));
        await refusedWith('FENCED', store.append(batch(id, 'other')), 'another batch for the same place');
        sameJson(await journal(store, id), before, 'the journal');
      }
    },
  ),

  storeCase('OWN-2', 'after a takeover the old attempt is fenced and the new one writes', async (subject) => {
    const { store } = subject;
    await running(store);
    await appendNotes(store, 'run-1', 1, ['mine']);
    await expire(subject, 'worker-1');
    await beat(store, 'worker-2');
    assert.equal(await claim(store, 'run-1', 'worker-2'), 2);
    const { sequence } = await loaded(store, 'run-1');
    const late = {
      runId: 'run-1',
      attempt: 1,
      firstSequence: sequence + 1,
      entries: [note('late')],
      totals: totalsOf(9),
    };
    await refusedWith('FENCED', store.append(late), 'the next entry by the old attempt');
    await refusedWith(
      'FENCED',
      store.append({ ...late, firstSequence: 4 }),
      'an entry over the claim by the old attempt',
    );
    await refusedWith('FENCED', store.append({ ...late, attempt: 3 }), 'an attempt that does not exist yet');
    await appendNotes(store, 'run-1', 2, ['theirs'], totalsOf(1));
    assert.deepEqual(notesOf(await journal(store, 'run-1')), ['mine', 'theirs']);
    assert.equal((await loaded(store, 'run-1')).totals.results, 1);
  }),

  storeCase('OWN-2', 'an append and a cancel at once end in one of two ways, and never in both', async ({ store }) => {
    for (const n of upTo(15)) {
      const id = `run-${n}`;
      await running(store, { id });
      const append = () =>
        store.append({ runId: id, attempt: 1, firstSequence: 3, entries: [note('result')], totals: totalsOf(1) });
      const cancel = () => change(store, id, { status: 'cancelled' }, [note('cancelled')]);
      const [landed] =
        n % 2 === 0
          ? await Promise.allSettled([append(), cancel()])
          : (await Promise.allSettled([cancel(), append()])).reverse();
      const entries = await journal(store, id);
      assert.deepEqual(
        entries.map(({ sequence }) => sequence),
        upTo(entries.length),
      );
      const expected = landed?.status === 'fulfilled' ? ['result', 'cancelled'] : ['cancelled'];
      assert.deepEqual(
        notesOf(entries),
        expected,
        'an accepted result stands before the cancel, a refused one nowhere',
      );
      if (landed?.status === 'rejected') await refusedWith('FENCED', Promise.reject(landed.reason), 'the loser');
    }
  }),

  storeCase('STO-1', 'journals of different runs do not touch each other', async ({ store }) => {
    const ids = upTo(8).map((n) => `run-${n}`);
    for (const id of ids) await running(store, { id });
    await Promise.all(
      ids.map(async (id) => {
        for (const n of upTo(5)) await appendNotes(store, id, 1, [`${id}/${n}`], totalsOf(n));
      }),
    );
    for (const id of ids) {
      assert.deepEqual(
        notesOf(await journal(store, id)),
        upTo(5).map((n) => `${id}/${n}`),
      );
      assert.equal((await loaded(store, id)).totals.results, 5);
    }
  }),
];
