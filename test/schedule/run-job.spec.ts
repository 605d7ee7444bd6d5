import type { EngineLog } from '../../lib/contracts/ports/system.port.js';
import { IntervalTrigger } from '../../lib/schedule/job-trigger.js';
import { type JobSchedule, parseJobSchedule, RunJob, scheduleText } from '../../lib/schedule/run-job.js';
import { ManualClock, rest } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';

const logged: string[] = [];
const log: EngineLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (message, fields) => void logged.push(`${message} ${JSON.stringify(fields)}`),
};

function job(
  run: () => Promise<void>,
  { random = 0, schedule = { everyMs: 1_000 } }: { random?: number; schedule?: JobSchedule } = {},
) {
  const clock = new ManualClock();
  return {
    clock,
    job: new RunJob({ name: 'agent-runs:test', schedule, run, clock, ids: { random: () => random }, log }),
  };
}

beforeEach(() => {
  logged.length = 0;
});

describe('A recovery job', () => {
  it('CFG-3: never overlaps itself', async () => {
    const gate = signal();
    let runs = 0;
    const { clock, job: turned } = job(() => (runs++, gate.promise));
    const first = turned.tick();
    await clock.advance(0);
    await turned.tick();
    expect(runs).toBe(1);
    gate.resolve();
    await first;
    const second = turned.tick();
    await clock.advance(0);
    await second;
    expect(runs).toBe(2);
  });

  it.each([
    ['1s', 50],
    ['1m', 500],
    ['* * * * *', 125],
  ])('CFG-3: begins a little later each time, %s', async (time, jitter) => {
    const schedule = await parseJobSchedule(time, 'x');
    let runs = 0;
    const { clock, job: turned } = job(async () => void runs++, { random: 0.5, schedule });
    const tick = turned.tick();
    await clock.advance(jitter - 1);
    expect(runs).toBe(0);
    await clock.advance(1);
    await tick;
    expect(runs).toBe(1);
  });

  it('CFG-3: logs a failure without its words and goes on', async () => {
    let runs = 0;
    const { clock, job: turned } = job(async () => {
      runs++;
      throw Object.assign(new RangeError('postgres://user:secret@db'), { code: 'STORE_UNAVAILABLE' });
    });
    for (const _ of [1, 2]) {
      const tick = turned.tick();
      await clock.advance(0);
      await tick;
    }
    expect(runs).toBe(2);
    expect(logged).toHaveLength(2);
    expect(logged[0]).toBe(
      'agent-runs:test failed; the next tick tries again {"error":"RangeError","code":"STORE_UNAVAILABLE"}',
    );
  });

  it('CFG-6: does nothing once stopped, not even what waited for its jitter', async () => {
    let runs = 0;
    const { clock, job: turned } = job(async () => void runs++, { random: 0.9 });
    const tick = turned.tick();
    await rest();
    turned.stop();
    await tick;
    await turned.tick();
    expect([runs, clock.pending]).toEqual([0, 0]);
  });
});

describe('When a job runs', () => {
  it('CFG-3: a duration or a cron expression', async () => {
    const everyMinute = await parseJobSchedule('* * * * *', 'x');
    expect(await parseJobSchedule('30s', 'x')).toEqual({ everyMs: 30_000 });
    expect(await parseJobSchedule(250, 'x')).toEqual({ everyMs: 250 });
    expect(everyMinute).toMatchObject({ cron: '* * * * *' });
    expect([scheduleText({ everyMs: 30_000 }), scheduleText({ everyMs: 1 }), scheduleText(everyMinute)]).toEqual([
      'every 30s',
      'every 1ms',
      'at * * * * *',
    ]);
  });

  it('CFG-3: own timers turn durations and cron expressions, and stop', async () => {
    const turned = [signal(), signal()] as const;
    const { job: often } = job(async () => turned[0].resolve(), { schedule: { everyMs: 1 } });
    const { job: secondly } = job(async () => turned[1].resolve(), {
      schedule: await parseJobSchedule('* * * * * *', 'x'),
    });
    const ticks: Promise<void>[] = [];
    for (const each of [often, secondly]) {
      // The manual clock never comes by itself: no jitter in this test.
      Object.assign(each, { jitter: () => Promise.resolve() });
      const tick = each.tick.bind(each);
      each.tick = () => {
        const turn = tick();
        ticks.push(turn);
        return turn;
      };
    }
    const trigger = new IntervalTrigger();
    trigger.start([often, secondly]);
    await Promise.all(turned.map(({ promise }) => promise));
    trigger.stop();
    trigger.stop();
    await Promise.all(ticks);
    const before = ticks.length;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(ticks).toHaveLength(before);
  });
});
