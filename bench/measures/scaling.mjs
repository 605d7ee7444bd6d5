// What the same work costs in an empty database, beside runs that wait for people, and behind a long past.
import { setTimeout as sleep } from 'node:timers/promises';
import { startApplication } from '../application.mjs';
import { Crowd } from '../crowd.mjs';
import { promptOf } from '../instant-model.mjs';
import { median } from '../statistics.mjs';

const BATCH = 64;
const PROMPT = { agent: 'bench', prompt: promptOf({ turns: 0 }) };
const ROWS_PER_SETTLED_RUN = 22;

export async function measureScaling(database, { quick }) {
  const size = quick ? { waiting: 1_000, journalRows: 22_000 } : { waiting: 10_000, journalRows: 1_000_000 };
  const worker = await startApplication(database);
  const office = await startApplication(database, { worker: false });
  try {
    const crowd = await Crowd.on(office.query);
    const { runId: waiting } = await worker.run(promptOf({ turns: 1, tool: 'pay' }));
    // A page is full from the beginning.
    await crowd.copy(waiting, 20);
    await costs(worker, office);
    const steps = [{ waiting: 0, journalRows: 0, ...(await costs(worker, office)) }];
    await crowd.copy(waiting, size.waiting);
    await database.refreshStatistics();
    steps.push({ waiting: size.waiting, journalRows: 0, ...(await costs(worker, office)) });
    await crowd.copy(
      await worker.complete(promptOf({ turns: 10 })),
      Math.ceil(size.journalRows / ROWS_PER_SETTLED_RUN),
    );
    await database.refreshStatistics();
    await sleep(quick ? 0 : 10_000);
    steps.push({ ...size, ...(await costs(worker, office)) });
    return steps;
  } finally {
    await office.close();
    await worker.close();
  }
}

/** Medians in ms of what callers and workers do. Looks for work come with the claims: a worker looks as soon as there is layer. */
async function costs(worker, office, batches = 5) {
  worker.worker.pause();
  const start = [];
  const claim = [];
  for (let batch = 0; batch < batches; batch += 1) {
    const ids = [];
    for (let done = 0; done < BATCH; done += 1)
      start.push(await timed(async () => ids.push((await office.runs.start(PROMPT)).id)));
    claim.push((await timed(() => allCompleted(worker, ids))) / BATCH);
  }
  worker.worker.resume();
  const run = await each(10, () => worker.complete(promptOf({ turns: 10 })));
  const list = await each(20, () => office.runs.list({ limit: 20 }));
  const page = await each(20, () => office.runs.list({ statuses: ['waiting'], limit: 20 }));
  const inbox = await each(20, () => office.runs.pendingInteractions({ limit: 20 }));
  return { start: median(start), claim: median(claim), run, list, page, inbox };
}

async function allCompleted(worker, ids) {
  worker.worker.resume();
  await Promise.all(ids.map((id) => worker.stopped(id)));
  worker.worker.pause();
}

async function each(times, work) {
  const values = [];
  for (let done = 0; done < times; done += 1) values.push(await timed(work));
  return median(values);
}

async function timed(work) {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
