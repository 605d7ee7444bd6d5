// What a run costs while it waits for a person: rows in the database, nothing in the process.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as sleep } from 'node:timers/promises';
import { startApplication } from '../application.mjs';
import { promptOf } from '../instant-model.mjs';

export async function measureWaiting(database, { quick }) {
  const count = quick ? 3_000 : 10_000;
  const app = await startApplication(database);
  try {
    await suspend(app, 3_000);
    const heapBefore = await heapUsed();
    const storedBefore = await database.bytesStored();
    await suspend(app, count);
    const heapAfter = await heapUsed();
    const storedAfter = await database.bytesStored();
    return {
      count,
      heapBytesPerRun: (heapAfter - heapBefore) / count,
      storedBytesPerRun: storedBefore === null ? null : (storedAfter - storedBefore) / count,
    };
  } finally {
    await app.close();
  }
}

async function suspend(app, count) {
  let left = count;
  const loop = async () => {
    while (left > 0) {
      left -= 1;
      await app.run(promptOf({ turns: 1, tool: 'pay' }));
    }
  };
  await Promise.all(Array.from({ length: 64 }, loop));
}

async function heapUsed() {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  for (let pass = 0; pass < 4; pass += 1) {
    await sleep(50);
    collect();
  }
  return process.memoryUsage().heapUsed;
}
