import { describe, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { BatchQueue } from '../../../../lib/stores/typeorm/pooled/batch-queue.js';
import { inSlices } from '../../../../lib/stores/typeorm/pooled/in-slices.js';

/** Runs that hand in their next work as soon as they are told of the last. @returns the sizes of the batches */
async function batchesOf(runs: number, maxBatches: number): Promise<number[]> {
  const sizes: number[] = [];
  const again = new Map<number, number>();
  const queue = new BatchQueue<number>({
    maxBatches,
    divide: (waiting) => ({ batch: waiting, left: [] }),
    send: async (batch) => {
      sizes.push(batch.length);
      await pause(5);
      await inSlices(batch, maxBatches, (run) => {
        const turns = again.get(run) ?? 0;
        again.set(run, turns + 1);
        if (turns < 1) void Promise.resolve().then(() => queue.add(run));
      });
    },
  });
  for (let run = 0; run < runs; run += 1) queue.add(run);
  while (!queue.isIdle) await pause(5);
  expect([...again.values()]).toEqual(Array.from({ length: runs }, () => 2));
  return sizes;
}

describe('those who wait for a batch', () => {
  it('decision 5: come back in as many batches as may be on their way, so that nobody has to stand still', async () => {
    expect(await batchesOf(64, 4)).toEqual([64, 16, 16, 16, 16]);
    expect(await batchesOf(64, 2)).toEqual([64, 32, 32]);
  });

  it('decision 5: come back together where they are few', async () => {
    expect(await batchesOf(12, 4)).toEqual([12, 12]);
  });
});
