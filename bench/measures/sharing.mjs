// The same load on one process and on two: of runs that each process starts itself, and of runs that wait in the queue and have to be claimed.
import { setTimeout as sleep } from 'node:timers/promises';
import { startApplication } from '../application.mjs';
import { promptOf } from '../instant-model.mjs';
import { median, spreadOf } from '../statistics.mjs';
import { Worker } from '../worker.mjs';

const MANY = 64;
const RUNS = 384;

export async function measureSharing(database, { rounds, quick }) {
  const count = quick ? 128 : RUNS;
  const samples = [];
  const workers = await Promise.all([1, 2].map(() => Worker.start(database, { trigger: false })));
  const [one, two] = workers;
  try {
    await Promise.all([one, two].map((worker) => worker.complete(512, MANY)));
    for (let round = 0; round < Math.ceil(rounds / 3); round += 1)
      samples.push({
        alone: await perSecond(count, () => one.complete(count, MANY)),
        shared: await perSecond(count, () => Promise.all([one, two].map((worker) => worker.complete(count / 2, MANY)))),
      });
    return { ...ratios(samples), queued: await queued(database, workers, 2 * count) };
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

/** Runs/s out of the queue, by one worker and by two. */
async function queued(database, workers, count) {
  const office = await startApplication(database, { worker: false });
  try {
    await Promise.all(workers.map((worker) => worker.pause()));
    const perSecondOf = {};
    for (const some of [workers.slice(0, 1), workers]) {
      const ids = await submit(office, count);
      perSecondOf[some.length] = await perSecond(count, async () => {
        await Promise.all(some.map((worker) => worker.resume()));
        await completed(office, ids);
      });
      await Promise.all(some.map((worker) => worker.pause()));
    }
    return perSecondOf;
  } finally {
    await office.close();
  }
}

async function submit(office, count) {
  const ids = [];
  for (let done = 0; done < count; done += MANY)
    ids.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(MANY, count - done) }, async () => {
          const { id } = await office.runs.start({ agent: 'bench', prompt: promptOf({ turns: 10 }) });
          return id;
        }),
      )),
    );
  return ids;
}

async function completed(office, ids) {
  const listed = ids.map((id) => `'${id}'`).join(', ');
  const unfinished = `SELECT COUNT(*) AS runs FROM agent_runs WHERE id IN (${listed}) AND status <> 'completed'`;
  while (Number((await office.query(unfinished))[0].runs) > 0) await sleep(50);
}

async function perSecond(runs, work) {
  const startedAt = performance.now();
  await work();
  return (runs * 1_000) / (performance.now() - startedAt);
}

function ratios(samples) {
  return {
    perSecond: {
      1: median(samples.map(({ alone }) => alone)),
      2: median(samples.map(({ shared }) => shared)),
    },
    ratio: spreadOf(samples.map(({ alone, shared }) => shared / alone)),
  };
}
