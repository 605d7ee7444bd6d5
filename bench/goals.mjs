// The figures that are held against a goal. A figure: what it is called, what was measured, and what it should be.
import { COMMITS_PER_RUN } from './floor.mjs';

/** One run at a time: at most so many times the floor. */
const ALONE = { 'sqlite-full': 1.3, postgres: 1.3, mariadb: 1.5, mysql: 1.5, 'sqlite-normal': 1.5 };
/** 64 runs at once: at least so many times the bare rate at 64; what is aimed for. */
const TOGETHER = {
  'sqlite-full': [5, 8],
  'sqlite-normal': [1.5, 3],
  mariadb: [1.2, 1.8],
  mysql: [1.2, 1.8],
  postgres: [1.5, 2],
};
/**
 * What a run costs, by what it is compared with: runs/s at least, CPU at most so many times that of the driver's floor or of the version before, and statements
 * on a server at most.
 */
const COST = {
  'sqlite-normal': {
    1: { floor: { perSecond: 0.5, cpuMs: 2.8 } },
    64: { floor: { perSecond: 1.25, cpuMs: 1.3 } },
    kilobytes: 400,
  },
  'sqlite-full': { 1: { floor: { perSecond: 0.85 } }, 64: { before: { perSecond: 2 } } },
  postgres: {
    1: { floor: { perSecond: 0.55, cpuMs: 3.5 }, statements: 23 },
    64: { before: { perSecond: 2, cpuMs: 0.4 }, statements: 2 },
  },
  mariadb: {
    1: { floor: { perSecond: 0.45, cpuMs: 4.5 }, statements: 24 },
    64: { floor: { perSecond: 1.2 }, before: { cpuMs: 0.42 }, statements: 2 },
  },
  mysql: { 1: { statements: 29 } },
};
/** What a process with 64 runs at once has more than after it was started. */
const ADDED_MB = 90;
/** The worker's poll: every second, backing off to this while there is nothing to do. */
const POLL_MS = 5_000;

/** None in the process; what the heap measurement itself is off by. */
const HEAP_NOISE = 100;

/** What a full database may add to what an empty one takes; medians of a few ms are no better than this. */
const FLAT = 1.5;

/** @param key of the database @param measured by measure; absent ones give no figures */
export function figuresOf(key, { throughput, cost, growth, latency, idle, waiting, sharing, scaling }) {
  return [
    ...(throughput ? throughputFigures(key, throughput) : []),
    ...(cost ? costFigures(key, cost) : []),
    ...(growth ? growthFigures(growth) : []),
    ...(latency ? latencyFigures(latency) : []),
    ...(idle
      ? Object.entries(idle.perSecond).map(([at, value]) =>
          atMost(`idle worker, ${at} run${at === '1' ? '' : 's'} at a time: queries/s`, value, 1, 2),
        )
      : []),
    ...(waiting
      ? [
          atMost(`heap per waiting run (${waiting.count} of them), bytes`, waiting.heapBytesPerRun, HEAP_NOISE, 0),
          ...(waiting.storedBytesPerRun === null
            ? []
            : [told('stored per waiting run, bytes', waiting.storedBytesPerRun, 0)]),
        ]
      : []),
    ...(sharing ? sharingFigures(sharing) : []),
    ...(scaling ? scalingFigures(scaling) : []),
  ];
}

function throughputFigures(key, measured) {
  const { ratioAlone, ratioWaited, ratioEight, ratioMany, work, barePerSecond, runsPerSecond, floorMs, cpuMs } =
    measured;
  const [floor, aim] = TOGETHER[key];
  const list = (values, digits) =>
    Object.values(values)
      .map((value) => value.toFixed(digits))
      .join(' · ');
  return [
    told('floor: 23 bare inserts one after the other, ms', floorMs, 2),
    atMost('one run at a time, × the floor', ratioAlone, ALONE[key], 2),
    told('the same by startAndWait, × the floor', ratioWaited, 2),
    told('8 runs at once, × the bare rate at 8', ratioEight, 2),
    atLeast('64 runs at once, × the bare rate at 64', ratioMany, floor, aim),
    told('bare inserts/s at 1 · 8 · 64', list(barePerSecond, 0)),
    told('runs/s at 1 · 8 · 64', list(runsPerSecond, 0)),
    told('CPU of this process, ms per run: floor · alone · 64 at once', list(cpuMs, 2)),
    atMost('commits per run, alone', work.alone.commits, COMMITS_PER_RUN, 1),
    told('commits per run, 64 at once', work.together.commits, 2),
    // Without a server no statement is a round trip.
    ...(key.startsWith('sqlite')
      ? []
      : [
          told(
            'round trips per run, alone · 64 at once',
            `${work.alone.statements.toFixed(0)} · ${work.together.statements.toFixed(1)}`,
          ),
        ]),
  ];
}

function costFigures(key, { medians, ratios, details }) {
  const goals = COST[key] ?? {};
  const list = (figures, digits) =>
    Object.entries(figures)
      .map(([name, value]) => `${name} ${value.toFixed(digits)}`)
      .join(' · ');
  const of = (atOnce, figure) =>
    Object.fromEntries(Object.entries(medians[atOnce]).map(([name, one]) => [name, one[figure]]));
  const [statements, kilobytes, addedMb] = [(one) => one.statements, (one) => one.kilobytes, (one) => one.addedMb].map(
    (pick) => Object.fromEntries(Object.entries(details).map(([name, one]) => [name, pick(one)])),
  );
  return [
    ...Object.keys(medians).flatMap((atOnce) => [
      told(`${atOnce} at once: runs/s`, list(of(atOnce, 'perSecond'), 0)),
      told(`${atOnce} at once: CPU, ms per run`, list(of(atOnce, 'cpuMs'), 2)),
      ...Object.entries(ratios[atOnce]).flatMap(([under, { perSecond, cpuMs }]) => {
        const goal = goals[atOnce]?.[under] ?? {};
        return [
          goal.perSecond
            ? atLeast(`${atOnce} at once: runs/s, × ${under}`, perSecond, goal.perSecond, goal.perSecond)
            : told(`${atOnce} at once: runs/s, × ${under}`, perSecond, 2),
          goal.cpuMs
            ? atMost(`${atOnce} at once: CPU, × ${under}`, cpuMs, goal.cpuMs, 2)
            : told(`${atOnce} at once: CPU, × ${under}`, cpuMs, 2),
        ];
      }),
      ...Object.entries(statements).map(([name, count]) => {
        const goal = goals[atOnce]?.statements;
        const label = `${atOnce} at once: statements per run, ${name}`;
        return goal && name === 'now' ? atMost(label, count[atOnce], goal, 1) : told(label, count[atOnce], 1);
      }),
    ]),
    goals.kilobytes
      ? atMost('64 at once: allocated per run, kB', kilobytes.now, goals.kilobytes, 0)
      : told('64 at once: allocated per run, kB', kilobytes.now, 0),
    atMost('64 at once: memory beyond that of the started process, MB', addedMb.now, ADDED_MB, 0),
    ...(details.before
      ? [told('the same before', `${kilobytes.before.toFixed(0)} kB · ${addedMb.before.toFixed(0)} MB`, 0)]
      : []),
  ];
}

function growthFigures({ ms, bytes, ratioMs, ratioBytes, large }) {
  const list = (values, digits) =>
    Object.values(values)
      .map((value) => value.toFixed(digits))
      .join(' · ');
  return [
    told('ms per turn at turn 50 · 200 · 400', list(ms, 2)),
    atMost('time per turn, turn 400 ÷ turn 50', ratioMs, 1.2, 2),
    told('bytes per turn at turn 50 · 200 · 400', list(bytes, 0)),
    atMost('bytes per turn, turn 400 ÷ turn 50', ratioBytes, 1.2, 2),
    atMost('200 turns with 1 kB results, kB of rows', large.journalBytes / 1_000, 400, 0),
    ...(large.fileBytes === null ? [] : [told('the same, kB that the files grew', large.fileBytes / 1_000, 0)]),
  ];
}

function latencyFigures({ start, answer, elsewhere }) {
  return [
    atMost('start → model called, ms (median)', start.median, 10, 2),
    told('start → model called, ms (p95)', start.p95, 2),
    atMost('answer → next model call, same process, ms (median)', answer.median, 10, 2),
    told('answer → next model call, same process, ms (p95)', answer.p95, 2),
    told('answer → next model call, other process, ms (median)', elsewhere.median, 0),
    atMost('answer → next model call, other process, ms (max)', elsewhere.max, POLL_MS, 0),
  ];
}

function sharingFigures({ perSecond, ratio, queued }) {
  return [
    told(
      '64 runs at once, runs/s of one process · of two',
      `${perSecond[1].toFixed(0)} · ${perSecond[2].toFixed(0)}`,
      0,
    ),
    told('two processes, × the rate of one', ratio, 2),
    told('out of the queue, runs/s of one process · of two', `${queued[1].toFixed(0)} · ${queued[2].toFixed(0)}`, 0),
  ];
}

/** Each cost in the empty database, beside the runs that wait, and behind the journal too. */
function scalingFigures(steps) {
  const [empty, , full] = steps;
  const beside = `${full.waiting.toLocaleString('en')} waiting runs · and ${full.journalRows.toLocaleString('en')} journal rows`;
  return [
    ['start of a run', 'start'],
    ['claim and one model call, 64 in a row', 'claim'],
    ['a run of ten turns', 'run'],
    ['first page of all runs', 'list'],
    ['first page of a status', 'page'],
    ['first page of open asks', 'inbox'],
  ].flatMap(([label, name]) => [
    told(`${label}, ms: empty · ${beside}`, steps.map((step) => step[name].toFixed(2)).join(' · '), 2),
    atMost(`${label}: full ÷ empty`, full[name] / empty[name], FLAT, 2),
  ]);
}

function told(label, measured, digits) {
  return { label, measured: typeof measured === 'string' ? measured : shown(measured, digits), goal: '', verdict: '' };
}

function atMost(label, measured, limit, digits) {
  const verdict = valueOf(measured) <= limit ? 'met' : 'missed';
  return { label, measured: shown(measured, digits), goal: `≤ ${limit}`, verdict };
}

function atLeast(label, measured, floor, aim) {
  const value = valueOf(measured);
  const verdict = value >= aim ? 'met' : value >= floor ? 'reached, aim missed' : 'missed';
  return { label, measured: shown(measured, 2), goal: `≥ ${floor}, aim ${aim}`, verdict };
}

/** A number, or a median with its spread. */
function valueOf(measured) {
  return typeof measured === 'number' ? measured : measured.median;
}

function shown(measured, digits) {
  if (typeof measured === 'number') return measured.toFixed(digits);
  const { median, from, to } = measured;
  return `${median.toFixed(digits)} (${from.toFixed(digits)}–${to.toFixed(digits)})`;
}
