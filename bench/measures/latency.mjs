// How soon something happens: from `start` to the model, and from a person's answer to the next request, here and in another process.
import { startApplication } from '../application.mjs';
import { promptOf } from '../instant-model.mjs';
import { median, quantile } from '../statistics.mjs';

export async function measureLatency(database, { quick }) {
  const app = await startApplication(database);
  try {
    for (let warmUp = 0; warmUp < 20; warmUp += 1) {
      await startToModel(app);
      await answerToModel(app, app);
    }
    return {
      start: await sample(quick ? 20 : 200, () => startToModel(app)),
      answer: await sample(quick ? 20 : 200, () => answerToModel(app, app)),
      elsewhere: await elsewhere(app, database, quick ? 2 : 8),
    };
  } finally {
    await app.close();
  }
}

/** The answer is given in a process that claims nothing; the worker finds it by its poll. */
async function elsewhere(app, database, count) {
  const other = await startApplication(database, { worker: false });
  try {
    return await sample(count, () => answerToModel(app, other));
  } finally {
    await other.close();
  }
}

async function sample(count, measure) {
  const values = [];
  for (let done = 0; done < count; done += 1) values.push(await measure());
  return { median: median(values), p95: quantile(values, 0.95), max: Math.max(...values), samples: values.length };
}

async function startToModel(app) {
  const requested = nextRequest(app);
  const startedAt = performance.now();
  const ended = app.complete(promptOf({ turns: 0 }));
  const latency = (await requested) - startedAt;
  await ended;
  return latency;
}

async function answerToModel(app, answering) {
  const { runId } = await app.run(promptOf({ turns: 1, tool: 'pay' }));
  const { interactions } = await answering.runs.get(runId);
  const requested = nextRequest(app);
  const startedAt = performance.now();
  await answering.runs.respond(runId, interactions[0].id, { decision: 'approve', by: 'bench' });
  const latency = (await requested) - startedAt;
  await app.runs.result(runId);
  return latency;
}

function nextRequest(app) {
  return new Promise((resolve) => {
    app.model.onRequest = () => {
      app.model.onRequest = () => undefined;
      resolve(performance.now());
    };
  });
}
