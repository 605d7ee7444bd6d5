// What a run of ten turns costs, beside the bare driver and beside an earlier version of the package: each in a process of its own, in turns within a round,
// so that a ratio is that of neighbours. A process is warm only after some 20 s.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMITS_PER_RUN, Floor } from '../floor.mjs';
import { median, spreadOf } from '../statistics.mjs';
import { Worker } from '../worker.mjs';

const HERE = fileURLToPath(new URL('../..', import.meta.url));
const AT_ONCE = [1, 64];

/** @param before directory of another version of this repository, built; without it there is none beside */
export async function measureCost(database, { rounds, quick, before, open }) {
  const portionMs = quick ? 300 : 800;
  const other = before && (await open());
  const versions = {
    now: await start(database, HERE),
    ...(other && { before: await start(other, path.resolve(before)) }),
  };
  const floor = new Floor(database);
  try {
    const warmMs = quick ? 2_000 : 20_000;
    for (const worker of Object.values(versions))
      for (const atOnce of AT_ONCE) await worker.ask('measure', { atOnce, ms: warmMs / AT_ONCE.length });
    await floor.together(64, 100);
    await database.refreshStatistics();
    await other?.refreshStatistics();
    const variants = {
      floor: (atOnce) => measureFloor(floor, atOnce, portionMs),
      ...Object.fromEntries(
        Object.entries(versions).map(([name, worker]) => [
          name,
          (atOnce) => worker.ask('measure', { atOnce, ms: portionMs }),
        ]),
      ),
    };
    const samples = [];
    for (let round = 0; round < rounds; round += 1) samples.push(await sample(variants, round));
    return { ...summary(samples, Object.keys(variants)), ...(await detailsOf(versions, quick)), samples };
  } finally {
    for (const worker of Object.values(versions)) await worker.stop();
    await other?.close();
  }
}

function start(database, directory) {
  return Worker.start(database, {}, { program: 'cost-process.mjs', directory });
}

/** Everything once, the other way round in every other round. */
async function sample(variants, round) {
  const names = Object.keys(variants);
  if (round % 2 === 1) names.reverse();
  const found = {};
  for (const atOnce of AT_ONCE) {
    found[atOnce] = {};
    for (const name of names) found[atOnce][name] = await variants[name](atOnce);
  }
  return found;
}

async function measureFloor(floor, atOnce, ms) {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const runs = await floor.during(atOnce, ms);
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: (runs * 1_000) / (performance.now() - startedAt),
    cpuMs: (user + system) / 1_000 / runs,
  };
}

async function detailsOf(versions, quick) {
  const details = {};
  for (const [name, worker] of Object.entries(versions)) {
    const { addedMb } = await worker.ask('measure', { atOnce: 64, ms: quick ? 500 : 3_000 });
    const alone = await worker.ask('count', { atOnce: 1, runs: 10 });
    const together = await worker.ask('count', { atOnce: 64, runs: quick ? 128 : 512 });
    const { kilobytes } = await worker.ask('allocate', { atOnce: 64, runs: quick ? 128 : 512 });
    details[name] = { addedMb, kilobytes, statements: { 1: alone.statements, 64: together.statements } };
  }
  return { details, commits: COMMITS_PER_RUN };
}

function summary(samples, names) {
  const medians = {};
  const ratios = {};
  for (const atOnce of AT_ONCE) {
    medians[atOnce] = {};
    ratios[atOnce] = {};
    for (const name of names)
      medians[atOnce][name] = Object.fromEntries(
        ['perSecond', 'cpuMs'].map((figure) => [figure, median(samples.map((one) => one[atOnce][name][figure]))]),
      );
    for (const under of names.filter((name) => name !== 'now'))
      ratios[atOnce][under] = Object.fromEntries(
        ['perSecond', 'cpuMs'].map((figure) => [
          figure,
          spreadOf(samples.map((one) => one[atOnce].now[figure] / one[atOnce][under][figure])),
        ]),
      );
  }
  return { medians, ratios };
}
