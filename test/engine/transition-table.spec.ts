import { describe, expect, it } from '@jest/globals';
import { RUN_STATUSES, isSettled, phaseOf, statusesOf, type RunStatus } from '../../lib/contracts/run-status.js';
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import { RUN_TRANSITIONS, respectsSettled, type RunVerb } from '../../lib/contracts/run-transitions.js';
import { changeStatus } from '../../lib/engine/transitions.js';
import { note } from '../../packages/contract/lib/scenario.js';

const SETTLED: RunStatus[] = ['completed', 'failed', 'cancelled', 'blocked', 'timed_out'];
const VERBS = Object.keys(RUN_TRANSITIONS) as RunVerb[];

describe('the table of transitions', () => {
  it.each(VERBS)(
    'RUN-1: %s changes the status as the table says, wherever it is legal, and is refused elsewhere',
    (verb) => {
      const { from, to, entries } = RUN_TRANSITIONS[verb];
      for (const status of RUN_STATUSES) {
        const run = { id: 'r', status };
        for (const type of entries) {
          const entry = { type, at: 1 } as JournalEntry;
          const change = () => changeStatus(run, verb, [note('before'), entry], { output: 'x' });
          if (from.includes(status))
            expect(change()).toEqual({ change: { status: to, output: 'x' }, entries: [note('before'), entry] });
          else
            expect(change).toThrow(
              expect.objectContaining({ code: 'ILLEGAL_TRANSITION', details: { runId: 'r', status, verb } }),
            );
        }
      }
    },
  );

  it.each(VERBS)('RUN-1: %s is not done without the entry that journals it', (verb) => {
    const run = { id: 'r', status: RUN_TRANSITIONS[verb].from[0] as RunStatus };
    expect(() => changeStatus(run, verb, [note('another')])).toThrow('is journaled by');
    expect(() => changeStatus(run, verb, [])).toThrow('is journaled by');
  });

  it('RUN-1: a settled run is left by a retry of a failed one and by a restart, both back to pending', () => {
    const leaving = VERBS.filter((verb) => RUN_TRANSITIONS[verb].from.some(isSettled));
    expect(leaving).toEqual(['retry', 'restart']);
    expect(RUN_TRANSITIONS.retry.from.filter(isSettled)).toEqual(['failed']);
    expect(leaving.map((verb) => RUN_TRANSITIONS[verb].to)).toEqual(['pending', 'pending']);
  });

  it('RUN-1: every open status can be cancelled and can time out; a blocked run is blocked from its first moment', () => {
    for (const verb of ['cancel', 'time_out'] as const)
      expect(RUN_TRANSITIONS[verb].from).toEqual(RUN_STATUSES.filter((status) => !isSettled(status)));
    const reached = new Set<RunStatus>(['queued', 'blocked', ...VERBS.map((verb) => RUN_TRANSITIONS[verb].to)]);
    expect(reached).toEqual(new Set(RUN_STATUSES));
  });

  it('RUN-1: a store may leave a settled status only for pending, by a retry of a failed run or a restart that counts itself', () => {
    for (const status of RUN_STATUSES) {
      for (const to of RUN_STATUSES) {
        const run = { status, restarts: 2 };
        expect(respectsSettled(run, { status: to })).toBe(
          !isSettled(status) || (to === 'pending' && status === 'failed'),
        );
        expect(respectsSettled(run, { status: to, restarts: 3 })).toBe(!isSettled(status) || to === 'pending');
        expect(respectsSettled(run, { status: to, restarts: 2 })).toBe(
          !isSettled(status) || (to === 'pending' && status === 'failed'),
        );
      }
      expect(respectsSettled({ status, restarts: 0 }, { output: 'late' })).toBe(true);
    }
  });

  it('RUN-1: every status has one phase', () => {
    expect(
      Object.fromEntries(
        (['queued', 'active', 'suspended', 'settled'] as const).map((phase) => [phase, statusesOf(phase)]),
      ),
    ).toEqual({
      queued: ['queued'],
      active: ['pending', 'running', 'retry_wait'],
      suspended: ['waiting', 'interrupted', 'needs_attention'],
      settled: SETTLED,
    });
    expect(RUN_STATUSES.filter((status) => isSettled(status))).toEqual(SETTLED);
    expect(RUN_STATUSES.every((status) => statusesOf(phaseOf(status)).includes(status))).toBe(true);
  });
});
