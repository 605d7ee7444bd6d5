import { type INestApplicationContext, Injectable } from '@nestjs/common';
import { Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { jest } from '@jest/globals';
import { RunRecovery } from '../../lib/engine/run-recovery.js';
import type { AgentRunsModuleOptions, AgentRunsModuleStructure } from '../../lib/module/agent-runs-module.options.js';
import { findTrigger } from '../../lib/schedule/job-trigger.js';
import { agentWith, bootHost, bootProblems, quiet } from '../support/nest-host.js';
import { signal } from '../support/signal.js';

const NAMES = ['agent-runs:reconcile', 'agent-runs:backoff', 'agent-runs:expire'];

let app: INestApplicationContext | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
  jest.restoreAllMocks();
});

async function bootScheduled(
  runs: AgentRunsModuleOptions & AgentRunsModuleStructure = {},
  host: Parameters<typeof bootHost>[0] = {},
): Promise<SchedulerRegistry> {
  app = await bootHost({
    imports: [ScheduleModule.forRoot()],
    providers: [agentWith([])],
    ...host,
    runs: { ...quiet, trigger: 'schedule', ...runs },
  });
  return app.get(SchedulerRegistry);
}

describe("The recovery jobs in the host's scheduler (CFG-3)", () => {
  it('CFG-3: without ScheduleModule the boot fails with the fix', async () => {
    const { trigger: _, ...runs } = quiet;
    expect(await bootProblems({ runs })).toEqual([
      expect.stringMatching(
        /ScheduleModule, which is not imported\. Add ScheduleModule\.forRoot\(\) from @nestjs\/schedule/,
      ),
    ]);
  });

  describe('where @nestjs/schedule cannot be loaded', () => {
    const failing =
      (code: string, name = '@nestjs/schedule') =>
      () =>
        Promise.reject(Object.assign(new Error(`Cannot find package '${name}'`), { code }));
    const missing = failing('ERR_MODULE_NOT_FOUND');
    const noHost = null as never;

    it.each(['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'])('CFG-3: own timers are the default (%s)', async (code) => {
      expect((await findTrigger(undefined, noHost, failing(code))).kind).toBe('interval');
    });

    it('CFG-3: a host that asks for the scheduler is told what is missing', async () => {
      await expect(findTrigger('schedule', noHost, missing)).rejects.toThrow(
        'The recovery jobs need @nestjs/schedule, which is not installed.',
      );
    });

    it('CFG-3: one that is there and broken is no reason to do without it', async () => {
      for (const broken of [failing('ERR_REQUIRE_ESM'), failing('MODULE_NOT_FOUND', 'cron')])
        await expect(findTrigger(undefined, noHost, broken)).rejects.toThrow(
          'The recovery jobs need @nestjs/schedule, which could not be loaded.',
        );
    });
  });

  it('CFG-3: durations become intervals and expressions cron jobs, once each, under fixed names', async () => {
    const registry = await bootScheduled({ expireEvery: '0 0 * * *' });
    expect(registry.getIntervals()).toEqual(NAMES.slice(0, 2));
    expect([...registry.getCronJobs().keys()]).toEqual(NAMES.slice(2));
    expect(registry.getCronJob('agent-runs:expire').isActive).toBe(true);
  });

  it('CFG-3: turns the recovery, and the host may turn a job itself', async () => {
    const reconciled = signal();
    const reconcile = jest
      .spyOn(RunRecovery.prototype, 'reconcile')
      .mockImplementation(async () => reconciled.resolve());
    const expired = signal();
    jest.spyOn(RunRecovery.prototype, 'expireInteractions').mockImplementation(async () => expired.resolve());
    const registry = await bootScheduled({ reconcileEvery: 5, expireEvery: '0 0 1 1 *' });
    await reconciled.promise;
    expect(reconcile).toHaveBeenCalled();
    await registry.getCronJob('agent-runs:expire').fireOnTick();
    await expired.promise;
  });

  it("CFG-3: a host's own interval still ticks once a time", async () => {
    const ticks: number[] = [];
    const third = signal();
    @Injectable()
    class HostJobs {
      @Interval('host', 40)
      tick(): void {
        ticks.push(performance.now());
        if (ticks.length === 3) third.resolve();
      }
    }
    const registry = await bootScheduled({}, { providers: [HostJobs, agentWith([])] });
    await third.promise;
    expect(registry.getIntervals()).toEqual(
      ['host', ...NAMES].sort((a, b) => registry.getIntervals().indexOf(a) - registry.getIntervals().indexOf(b)),
    );
    // Doubled timers would come in pairs.
    expect(Math.min(ticks[1]! - ticks[0]!, ticks[2]! - ticks[1]!)).toBeGreaterThan(20);
  });

  it('CFG-3: jobs are gone after shutdown, in whatever order the hooks came', async () => {
    const registry = await bootScheduled({ backoffEvery: '* * * * * *' });
    await app?.close();
    expect([registry.getIntervals(), [...registry.getCronJobs().keys()]]).toEqual([[], []]);
  });

  it.each<[AgentRunsModuleStructure, string[]]>([
    [{ worker: false }, []],
    [{ worker: false, recovery: true }, NAMES],
    [{ worker: true, recovery: false }, []],
    [{ trigger: false }, []],
    [{ trigger: 'interval' }, []],
  ])('CFG-3: %j registers %j', async (structure, names) => {
    const registry = await bootScheduled(structure);
    expect(registry.getIntervals()).toEqual(names);
  });

  it('CFG-3: nothing is needed of ScheduleModule where it is not used', async () => {
    for (const structure of [{ trigger: 'interval' as const }, { trigger: false as const }, { worker: false }]) {
      app = await bootHost({ providers: [agentWith([])], runs: { ...quiet, trigger: 'schedule', ...structure } });
      await app.close();
    }
  });
});
