// A process of its own with the application of the benchmark: it runs what it is told to, or what it finds in the queue.
import { startApplication } from './application.mjs';
import { dataSourceOf } from './databases.mjs';
import { promptOf } from './instant-model.mjs';

const { database, settings } = JSON.parse(process.env.BENCH_WORKER);
const app = await startApplication({ dataSource: () => dataSourceOf(database) }, settings);

process.on('message', async ({ runs, atOnce }) => {
  if (runs === undefined) {
    await app.close();
    return process.disconnect();
  }
  let left = runs;
  const loop = async () => {
    while (left > 0) {
      left -= 1;
      await app.complete(promptOf({ turns: 10 }));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  process.send({ done: runs });
});
process.send({ ready: true });
