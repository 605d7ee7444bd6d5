import { describe, expect, it } from '@jest/globals';
import { RUN_STATUSES, isSettled, phaseOf, statusesOf, type RunStatus } from '../../lib/contracts/run-status.js';
import { RUN_TRANSITIONS, respectsSettled, transitionOf, type RunVerb } from '../../lib/contracts/run-transitions.js';

const OPEN: RunStatus[] = ['queued', 'pending', 'running', 'retry_wait', 'waiting', 'interrupted', 'needs_attention'];
const SETTLED: RunStatus[] = ['completed', 'failed', 'cancelled', 'blocked', 'timed_out'];

/** Spec 2.1 and decision 19, written down a second time: verb, from where, to where. */
const LEGAL: Record<RunVerb, [from: RunStatus[], to: RunStatus]> = {
  dequeue: [['queued'], 'pending'],
  claim: [['pending', 'retry_wait'], 'running'],
  take_over: [['running'], 'running'],
  hand_over: [['running'], 'pending'],
  back_off: [['running'], 'retry_wait'],
  suspend: [['running'], 'waiting'],
  interrupt: [['running', 'pending', 'retry_wait'], 'interrupted'],
  call_attention: [['running', 'pending', 'retry_wait'], 'needs_attention'],
  complete: [['running'], 'completed'],
  fail: [['running', 'waiting'], 'failed'],
  block: [['running'], 'blocked'],
  time_out: [OPEN, 'timed_out'],
  cancel: [OPEN, 'cancelled'],
  answer: [['waiting'], 'pending'],
  resume: [['waiting', 'interrupted', 'needs_attention'], 'pending'],
  seize: [['running'], 'pending'],
  resolve: [['needs_attention'], 'pending'],
  retry: [['failed', 'needs_attention'], 'pending'],
  restart: [SETTLED, 'pending'],
};

describe('the table of transitions', () => {
  const cells = Object.entries(LEGAL).flatMap(([verb, [from, to]]) =>
    RUN_STATUSES.map((status) => ({ verb: verb as RunVerb, status, to: from.includes(status) ? to : undefined })),
  );

  it.each(cells)('RUN-1: $verb from $status leads to $to', ({ verb, status, to }) => {
    expect(transitionOf(status, verb)?.to).toBe(to);
  });

  it('RUN-1: has each verb in one place, with an entry and somebody who may do it', () => {
    const verbs = RUN_TRANSITIONS.map(({ verb }) => verb);
    expect(new Set(verbs).size).toBe(verbs.length);
    expect([...verbs].sort()).toEqual(Object.keys(LEGAL).sort());
    for (const { who, entry } of RUN_TRANSITIONS) {
      expect(who.length).toBeGreaterThan(0);
      expect(entry).toMatch(/^(run|interaction|tool|budget)\./);
    }
  });

  it('RUN-1: no worker, session or sweep leads out of a settled status', () => {
    for (const { from, who } of RUN_TRANSITIONS) {
      if (from.some(isSettled)) expect(who).toEqual(['caller']);
    }
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
