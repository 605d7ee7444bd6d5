import assert from 'node:assert/strict';
import type { Interaction, RunAtOneMoment } from 'nestjs-agent-runs';
import { anInteraction, note, submit, upTo } from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

/** What is shown of a run together is of one moment. */
export const snapshotCases: readonly StoreCase[] = [
  storeCase('EVT-1', 'a snapshot shows a run, its lease and its open interactions of one moment', async ({ store }) => {
    assert.equal(await store.snapshot('run-1'), null);
    await submit(store, { id: 'run-1', status: 'running' });
    const looks: RunAtOneMoment[] = [];
    let isOver = false;
    const looking = (async () => {
      while (!isOver) looks.push((await store.snapshot('run-1')) as RunAtOneMoment);
    })();
    // Waiting and its asks are one commit, running and the answers another: nobody may see half of either.
    for (const round of upTo(15)) {
      const asked = [1, 2].map((n) => anInteraction({ id: `ask-${round}-${n}`, operationKey: `r1.m${round}.t${n}` }));
      const write = (status: 'waiting' | 'running', interactions: Interaction[]) =>
        store.transition({
          runId: 'run-1',
          decide: () => ({ result: null, run: { change: { status }, entries: [note(status)] }, interactions }),
        });
      await write('waiting', asked);
      await write(
        'running',
        asked.map((one) => ({ ...one, status: 'cancelled' })),
      );
    }
    isOver = true;
    await looking;
    for (const { run, lease, interactions } of looks) {
      const seen = [run.status, run.sequence % 2, interactions.map(({ operationKey }) => operationKey)];
      const round = (run.sequence - 1 + (run.sequence % 2 === 0 ? 1 : 0)) / 2;
      const asks = [`r1.m${round}.t1`, `r1.m${round}.t2`];
      assert.deepEqual(seen, run.status === 'waiting' ? ['waiting', 0, asks] : ['running', 1, []]);
      assert.equal(lease, null);
    }
    assert.ok(looks.length > 0);
  }),
];
