// What a worker with nothing to do asks its database, jobs and heartbeat included.
import { setTimeout as sleep } from 'node:timers/promises';
import { startApplication } from '../application.mjs';

export async function measureIdle(database, { quick }) {
  const seconds = quick ? 6 : 30;
  const perSecond = {};
  for (const maxConcurrentRuns of [1, 64]) {
    const app = await startApplication(database, { maxConcurrentRuns });
    const { counter, stop } = database.countStatements();
    try {
      await sleep(seconds * 1_000);
      perSecond[maxConcurrentRuns] = counter.queries / seconds;
    } finally {
      stop();
      await app.close();
    }
  }
  return { seconds, perSecond };
}
