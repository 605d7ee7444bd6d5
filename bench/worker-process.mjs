// A process of its own with the application of the benchmark: it runs what it is told to, or what it finds in the queue.
import { startApplication } from './application.mjs';
import { dataSourceOf } from './databases.mjs';
import { promptOf } from './instant-model.mjs';

const { database, settings } = JSON.parse(process.env.BENCH_WORKER);
const app = await startApplication({ dataSource: () => dataSourceOf(database) }, settings);

const orders = {
  pause: () => app.worker.pause(),
  resume: () => app.worker.resume(),
  complete,
  stop: async () => {
    await app.close();
    process.disconnect();
  },
};

process.on('message', async ({ order, ...options }) => {
  await orders[order](options);
  if (process.connected) process.send({ done: order });
});
process.send({ ready: true });

async function complete({ runs, atOnce }) {
  let left = runs;
  const loop = async () => {
    while (left > 0) {
      left -= 1;
      await app.complete(promptOf({ turns: 10 }));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
}
