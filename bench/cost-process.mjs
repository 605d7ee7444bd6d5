// A process of its own with the application of one version of the package: runs what it is told to and says what that cost.
import { createRequire } from 'node:module';
import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { dataSourceOf } from './databases.mjs';
import { countStatements } from './databases/count-statements.mjs';
import { promptOf } from './instant-model.mjs';

const { database, settings, directory } = JSON.parse(process.env.BENCH_WORKER);
const { startApplication } = await import(pathToFileURL(path.join(directory, 'bench', 'application.mjs')));
const require = createRequire(path.join(directory, 'package.json'));
const app = await startApplication({ dataSource: () => dataSourceOf(database) }, settings);
const bootBytes = process.memoryUsage.rss();

const orders = { measure, count, allocate, stop };

process.on('message', async ({ order, ...options }) => {
  const answer = await orders[order](options);
  if (process.connected) process.send({ ...answer });
});
process.send({ ready: true });

/** Runs of ten turns, so many at once, for about so long. CPU of all threads, ms per run. */
async function measure({ atOnce, ms }) {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const runs = await runFor(atOnce, () => performance.now() - startedAt < ms);
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: (runs * 1_000) / (performance.now() - startedAt),
    cpuMs: (user + system) / 1_000 / runs,
    addedMb: (process.memoryUsage.rss() - bootBytes) / 2 ** 20,
  };
}

/** Statements per run; on a server each is a round trip. */
async function count({ atOnce, runs }) {
  const { counter, stop } = countStatements(database.type, require);
  try {
    const completed = await complete(atOnce, runs);
    return { statements: counter.statements / completed };
  } finally {
    stop();
  }
}

/** Bytes of JavaScript objects made per run, whatever became of them: sampled, so a few percent off. */
async function allocate({ atOnce, runs }) {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: 4_096,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  const completed = await complete(atOnce, runs);
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  return { kilobytes: sizeOf(profile.head) / 1_024 / completed };
}

function sizeOf({ selfSize, children }) {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize);
}

function complete(atOnce, runs) {
  let left = runs;
  return runFor(atOnce, () => (left -= 1) >= 0);
}

async function runFor(atOnce, goesOn) {
  let runs = 0;
  const loop = async () => {
    while (goesOn()) {
      await app.complete(promptOf({ turns: 10 }));
      runs += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  return runs;
}

async function stop() {
  await app.close();
  process.disconnect();
}
