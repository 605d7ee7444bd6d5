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
  await withWorkers(database, { trigger: false }, async ([one, two]) => {
    await Promise.all([one, two].map((worker) => worker.complete(512, MANY)));
    for (let round = 0; round < Math.ceil(rounds / 3); round += 1)
      samples.push({
        alone: await perSecond(count, () => one.complete(count, MANY)),
        shared: await perSecond(count, () => Promise.all([one, two].map((worker) => worker.complete(count / 2, MANY)))),
      });
  });
  return { ...ratios(samples), queued: await queued(database, count) };
}

/** Runs/s out of the queue, by one worker and by two. */
async function queued(database, count) {
  const office = await startApplication(database, { worker: false });
  try {
    const perSecondOf = {};
    for (const workers of [1, 2]) {
      const ids = await submit(office, count);
      await withWorkers(database, { trigger: false, pollInterval: '100ms' }, () => completed(office, ids), workers);
      perSecondOf[workers] = (count * 1_000) / (await timeOf(office, ids));
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
  while (Number((await office.query(`${countOf(ids)} AND status <> 'completed'`))[0].runs) > 0) await sleep(50);
}

/** From the first claim to the last end, by the clock of the database. */
async function timeOf(office, ids) {
  const [{ began, ended }] = await office.query(
    `SELECT MIN(started_at) AS began, MAX(finished_at) AS ended FROM agent_runs WHERE id IN (${listed(ids)})`,
  );
  return Number(ended) - Number(began);
}

const countOf = (ids) => `SELECT COUNT(*) AS runs FROM agent_runs WHERE id IN (${listed(ids)})`;
const listed = (ids) => ids.map((id) => `'${id}'`).join(', ');

async function withWorkers(database, settings, work, count = 2) {
  const workers = await Promise.all(Array.from({ length: count }, () => Worker.start(database, settings)));
  try {
    return await work(workers);
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
  }
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
