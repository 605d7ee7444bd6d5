import { afterEach, describe, expect, it } from '@jest/globals';
import { DEFAULT_RETRY_POLICY } from '../../lib/contracts/policies.js';
import { decideRecovery } from '../../lib/engine/recovery-decision.js';
import { StoreUnavailableError } from '../../lib/errors/store.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';

afterEach(stopEngines);

describe('What is begun in vain', () => {
  it.each(['idempotent', 'safe'] as const)(
    'I10: one that is %s and always lets trouble of a store out is begun five times, ever later, and then has failed',
    async (recovery) => {
      const clock = new ManualClock();
      const store = new MemoryRunStore({ clock: () => clock.now() });
      const begunAt: number[] = [];
      const broken = tool(
        'work',
        () => {
          begunAt.push(clock.now());
          throw new StoreUnavailableError('the archive does not answer');
        },
        { recovery },
      );
      const model = scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'sorry' }]);
      const modelRetry = { ...DEFAULT_RETRY_POLICY, initialDelayMs: 1_000, maxDelayMs: 60_000 };
      const settings = { pollMs: 100, pollIdleMs: 100 };
      const engine = await engineOver(store, agent(model, [broken], { modelRetry }), settings, clock);
      const run = await engine.runs.start({ agent: 'support', prompt: 'hello' });
      await clock.advance(60_000);
      expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed', output: 'sorry' });
      const pauses = begunAt.slice(1).map((at, index) => Math.round((at - (begunAt[index] as number)) / 1_000));
      expect(pauses).toEqual([1, 2, 4, 8]);
      expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([
        {
          outcome: 'error',
          error: { code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/begun 5 times.*the archive/) },
        },
      ]);
    },
  );

  it('JRN-5: a tool that never ends in time is not begun for ever because its probe says that nothing happened', () => {
    const call = { stored: 'probe', current: 'probe', interruptedBy: 'timeout' } as const;
    expect([1, 4, 5].map((attempts) => decideRecovery({ ...call, attempts }))).toEqual(['probe', 'probe', 'attention']);
    expect(decideRecovery({ ...call, interruptedBy: 'crash', attempts: 9 })).toBe('probe');
  });
});
