// Runs of ten turns, 1, 8 and 64 at a time, each in small portions between portions of the floor, so that the noise of the disk and of other processes
// meets both. A ratio is that of two neighbouring portions.
import { startApplication } from '../application.mjs';
import { COMMITS_PER_RUN, Floor } from '../floor.mjs';
import { promptOf } from '../instant-model.mjs';
import { median, spreadOf } from '../statistics.mjs';

const PROMPT = promptOf({ turns: 10 });
const MANY = 64;
/** Runs in a portion: a few tenths of a second. */
const PORTION = { 1: 3, 8: 16, 64: 128 };
/** Before this many runs the JIT is measured, not the library. */
const WARM_UP = 512;

export async function measureThroughput(database, { rounds }) {
  const app = await startApplication(database);
  const floor = new Floor(database);
  try {
    await runAtOnce(app, MANY, WARM_UP);
    await runAtOnce(app, 1, 40);
    await floor.together(MANY, 10);
    await database.refreshStatistics();
    const samples = [];
    for (let round = 0; round < rounds; round += 1) samples.push(await sample(app, floor));
    return { samples, cpuMs: await cpuOf(app, floor), work: await workOf(app, database), ...summary(samples) };
  } finally {
    await app.close();
  }
}

/** Everything once, in ms per run. */
async function sample(app, floor) {
  const bareAlone = await floor.alone(PORTION[1]);
  const alone = await runAtOnce(app, 1, PORTION[1]);
  const bareBetween = await floor.alone(PORTION[1]);
  const waited = await runWaiting(app, PORTION[1]);
  const bareEight = await floor.together(8, PORTION[8]);
  const eight = await runAtOnce(app, 8, PORTION[8]);
  const bareMany = await floor.together(MANY, PORTION[64] / 2);
  const many = await runAtOnce(app, MANY, PORTION[64]);
  return { bareAlone, alone, bareBetween, waited, bareEight, eight, bareMany, many };
}

/** @returns ms per run */
async function runAtOnce(app, atOnce, total) {
  let left = total;
  const startedAt = performance.now();
  const loop = async () => {
    while (left > 0) {
      left -= 1;
      await app.complete(PROMPT);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  return (performance.now() - startedAt) / total;
}

/** One at a time by `startAndWait`, which reads the run. @returns ms per run */
async function runWaiting(app, total) {
  const startedAt = performance.now();
  for (let done = 0; done < total; done += 1) await app.runs.startAndWait({ agent: 'bench', prompt: PROMPT });
  return (performance.now() - startedAt) / total;
}

/** What this process computes for a run, whatever it waits for: ms, garbage collection and system calls included. */
async function cpuOf(app, floor) {
  const of = async (work, total) => {
    const before = process.cpuUsage();
    await work(total);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 / total;
  };
  return {
    floor: await of((total) => floor.alone(total), 20),
    alone: await of((total) => runAtOnce(app, 1, total), 40),
    together: await of((total) => runAtOnce(app, MANY, total), 384),
  };
}

/** Transactions that wrote, and statements sent, for a run alone and for each of many. */
async function workOf(app, database) {
  const count = async (atOnce, total) => {
    const { counter, stop } = database.countStatements();
    try {
      await runAtOnce(app, atOnce, total);
      return { commits: counter.commits / total, statements: counter.statements / total };
    } finally {
      stop();
    }
  };
  return { alone: await count(1, 10), together: await count(MANY, 128) };
}

function summary(samples) {
  const medianOf = (name) => median(samples.map((one) => one[name]));
  const ratio = (over, under) => spreadOf(samples.map((one) => one[over] / one[under]));
  const perSecond = (ms, count = 1) => (count * 1_000) / ms;
  return {
    floorMs: medianOf('bareAlone'),
    barePerSecond: {
      1: perSecond(medianOf('bareAlone'), COMMITS_PER_RUN),
      8: perSecond(medianOf('bareEight'), COMMITS_PER_RUN),
      64: perSecond(medianOf('bareMany'), COMMITS_PER_RUN),
    },
    runsPerSecond: {
      1: perSecond(medianOf('alone')),
      8: perSecond(medianOf('eight')),
      64: perSecond(medianOf('many')),
    },
    ratioAlone: ratio('alone', 'bareAlone'),
    ratioWaited: ratio('waited', 'bareBetween'),
    ratioEight: ratio('bareEight', 'eight'),
    ratioMany: ratio('bareMany', 'many'),
  };
}
