import { describe, expect, it } from '@jest/globals';
import type { InboxMessage } from '../../lib/contracts/interaction.js';
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import type { LockedRun } from '../../lib/contracts/ports/run-store.port.js';
import type { RunRecord, SessionRecord } from '../../lib/contracts/run.js';
import { RUN_STATUSES } from '../../lib/contracts/run-status.js';
import { RUN_TRANSITIONS, type RunVerb } from '../../lib/contracts/run-transitions.js';
import { pendingInterruptOnce } from '../../lib/engine/transitions.js';
import { decideExit, settlement, type ExitTransition } from '../../lib/engine/settle-run.js';
import { advanceSession } from '../../lib/engine/sessions.js';
import { FencedError } from '../../lib/errors/store.errors.js';
import { aRun, anInteraction, note, totalsOf } from '../../packages/contract/lib/scenario.js';

const NOW = 1_700_000_100_000;

function locked(run: Partial<RunRecord> = {}, more: Partial<LockedRun> = {}): LockedRun {
  return {
    now: NOW,
    run: aRun(NOW - 1_000, {
      status: 'running',
      attempt: 2,
      owner: 'me',
      claimedAt: NOW - 500,
      activeMs: 100,
      sequence: 7,
      ...run,
    }),
    lease: null,
    interactions: [],
    inbox: [],
    lastMessageOrder: 0,
    session: null,
    nextInSession: null,
    ...more,
  };
}

const completed: JournalEntry = { type: 'run.completed', at: NOW };
const leave = (over: Partial<ExitTransition> = {}): ExitTransition => ({
  attempt: 2,
  verb: 'complete',
  sequence: 7,
  results: [note('result')],
  entries: () => [completed],
  totals: totalsOf(3),
  change: () => ({ output: 'done' }),
  ...over,
});

/** The entry by which the table wants a verb to be journaled. */
const entryOf = (verb: RunVerb) => ({ type: RUN_TRANSITIONS[verb].entries[0], at: NOW }) as JournalEntry;
const leaveBy = (verb: RunVerb, over: Partial<ExitTransition> = {}) =>
  leave({ verb, entries: () => [entryOf(verb)], ...over });

const session = (over: Partial<SessionRecord> = {}): SessionRecord => ({
  id: 's',
  mode: 'serial',
  owner: null,
  headRunId: 'run-1',
  latestCompletedRunId: 'before',
  lastOrder: 3,
  startedOrder: 1,
  ...over,
});

describe('how an attempt leaves its run', () => {
  it('I3: writes its last results, the change and the end in one go, with the active time', () => {
    const { run, result } = decideExit(locked(), leave());
    expect(run).toMatchObject({
      change: { status: 'completed', output: 'done', finishedAt: NOW, activeMs: 600 },
      entries: [note('result'), completed],
      totals: totalsOf(3),
    });
    expect(result).toMatchObject({ outcome: 'left', entries: [note('result'), completed] });
  });

  it('OWN-2: is fenced by another attempt and by every status but running', () => {
    for (const attempt of [1, 3])
      expect(() => decideExit(locked({ attempt }), leave())).toThrow(expect.objectContaining({ code: 'FENCED' }));
    for (const status of RUN_STATUSES.filter((one) => one !== 'running'))
      expect(() => decideExit(locked({ status }), leave())).toThrow(expect.objectContaining({ code: 'FENCED' }));
  });

  it('STO-4: another sequence under the same attempt is a broken promise of the store', () => {
    for (const sequence of [5, 6, 9])
      expect(() => decideExit(locked({ sequence }), leave())).toThrow(
        expect.objectContaining({ code: 'STORE_BROKEN' }),
      );
  });

  it('I10: recognises its own work after a commit whose answer was lost', () => {
    // Not on its first try: then somebody else has settled it (simulation, seed 7001899).
    expect(() => decideExit(locked({ status: 'completed', sequence: 9 }), { ...leave(), isFirstTry: true })).toThrow(
      expect.objectContaining({ code: 'FENCED' }),
    );
    const decision = decideExit(locked({ status: 'completed', sequence: 9 }), leave());
    expect(decision).toEqual({ result: { outcome: 'already', entries: [note('result'), completed], news: [] } });
    // The same status at another place is somebody else's.
    expect(() => decideExit(locked({ status: 'completed', sequence: 10 }), leave())).toThrow(
      expect.objectContaining({ code: 'FENCED' }),
    );
    expect(() => decideExit(locked({ status: 'completed', sequence: 9, attempt: 3 }), leave())).toThrow(
      expect.objectContaining({ code: 'FENCED' }),
    );
  });

  it('I2: a takeover that a caller asked for is not its own hand-over (simulation, seed 4314)', () => {
    const handOver = leaveBy('hand_over', { results: [], change: () => ({ wake: { cause: 'handover' } }) });
    const seized = locked({ status: 'pending', sequence: 8, wake: { cause: 'takeover' } });
    expect(() => decideExit(seized, handOver)).toThrow(FencedError);
    const own = locked({ status: 'pending', sequence: 8, wake: { cause: 'handover' } });
    expect(decideExit(own, handOver).result.outcome).toBe('already');
  });

  it('EVT-2: tells of a stop once, also after a commit whose answer was lost', () => {
    const interruptRequest = { at: NOW - 9, by: 'ann', reason: 'wrong order', journaled: false };
    const told: JournalEntry = { type: 'run.interrupt_requested', at: NOW - 9, by: 'ann', reason: 'wrong order' };
    const ends = leave({ pendingInterruptEntries: pendingInterruptOnce() });
    const first = decideExit(locked({ interruptRequest }), ends);
    expect(first.run?.entries).toEqual([note('result'), told, completed]);
    expect(first.run?.change.interruptRequest).toBeNull();
    // The row after that commit.
    const again = decideExit(locked({ status: 'completed', sequence: 10 }), ends);
    expect(again).toEqual({ result: { ...first.result, outcome: 'already' } });

    const waits = leaveBy('suspend', { pendingInterruptEntries: pendingInterruptOnce() });
    const journaled = { ...interruptRequest, journaled: true };
    expect(decideExit(locked({ interruptRequest }), waits).run?.change.interruptRequest).toEqual(journaled);
    const later = decideExit(
      locked({ interruptRequest: journaled }),
      leave({ pendingInterruptEntries: pendingInterruptOnce() }),
    );
    expect(later.run?.entries).toEqual([note('result'), completed]);
  });

  it('EVT-2: with nothing to tell, a transaction that only tells writes nothing', () => {
    const tells = leave({
      verb: null,
      results: [],
      entries: () => [],
      change: () => ({}),
      pendingInterruptEntries: pendingInterruptOnce(),
    });
    expect(decideExit(locked(), tells)).toEqual({ result: { outcome: 'stayed', entries: [], news: [] } });
  });

  it("I12: does nothing before its time by the store's clock", () => {
    expect(decideExit(locked(), leaveBy('time_out', { notBefore: NOW + 1 }))).toEqual({
      result: { outcome: 'too_early', entries: [], news: [] },
    });
    expect(decideExit(locked(), leaveBy('time_out', { notBefore: NOW })).run?.change.status).toBe('timed_out');
  });

  it.each([
    ['back_off', 'retry_wait'],
    ['hand_over', 'pending'],
    ['call_attention', 'needs_attention'],
    ['suspend', 'waiting'],
    ['interrupt', 'interrupted'],
  ] as const)('SUB-4: %s leaves the run open, and its session with it', (verb, status) => {
    const decision = decideExit(locked({}, { session: session() }), leaveBy(verb));
    expect(decision.run?.change).toMatchObject({ status });
    expect(decision.run?.change).not.toHaveProperty('finishedAt');
    expect(decision.session).toBeUndefined();
    expect(decision.nextInSession).toBeUndefined();
  });
});

describe('settling a run', () => {
  it('withdraws its open asks, its unspent approvals and its messages, and clears what an open run has', () => {
    const asks = [
      anInteraction({ id: 'open', status: 'pending' }),
      anInteraction({ id: 'unspent', status: 'approved', decidedAt: 7 }),
      anInteraction({ id: 'decided', status: 'denied' }),
    ];
    const message: InboxMessage = {
      runId: 'run-1',
      requestId: 'q',
      order: 1,
      sender: 'ann',
      message: 'x',
      status: 'queued',
      createdAt: 1,
    };
    const delivered: InboxMessage = { ...message, requestId: 'p', status: 'delivered' };
    const decision = settlement(locked({}, { interactions: asks, inbox: [message, delivered] }), 'cancel', [
      entryOf('cancel'),
    ]);
    expect(decision.interactions).toEqual([
      { ...asks[0], status: 'cancelled', decidedAt: NOW },
      { ...asks[1], status: 'cancelled' },
    ]);
    expect(decision.inbox).toEqual([{ ...message, status: 'withdrawn' }]);
    expect(decision.run?.change).toEqual({
      status: 'cancelled',
      waitingFor: [],
      attention: null,
      wake: null,
      nextAttemptAt: null,
      interruptRequest: null,
      finishedAt: NOW,
    });
  });

  it('SUB-5: chains a completed run to the one that completed before it; others join no history', () => {
    const settledBy = (verb: RunVerb) => settlement(locked({}, { session: session() }), verb, [entryOf(verb)]);
    expect(settledBy('complete').run?.change.precedingRunId).toBe('before');
    for (const verb of ['fail', 'cancel', 'time_out'] as const) {
      const decision = settledBy(verb);
      expect(decision.run?.change).not.toHaveProperty('precedingRunId');
      expect(decision.session).toEqual({ headRunId: null });
    }
  });
});

describe("a session's advance", () => {
  const next = aRun(NOW, { id: 'next', status: 'queued', sessionOrder: 2 });

  it('SUB-4: makes the next run in line pending, with its history fixed to the latest completed one', () => {
    const advanced = advanceSession(locked({}, { session: session(), nextInSession: next }), true);
    expect(advanced).toMatchObject({
      session: { headRunId: 'next', startedOrder: 2, latestCompletedRunId: 'run-1' },
      nextInSession: {
        change: { status: 'pending', historyRunId: 'run-1', historyCaptured: true, wake: { cause: 'submitted' } },
        entries: [{ type: 'run.dequeued', afterRunId: 'run-1' }],
      },
    });
    const failed = advanceSession(locked({}, { session: session(), nextInSession: next }), false);
    expect(failed.nextInSession?.change.historyRunId).toBe('before');
    expect(failed.session).not.toHaveProperty('latestCompletedRunId');
  });

  it('SUB-4: frees the session when nobody waits', () => {
    expect(advanceSession(locked({}, { session: session() }), true)).toEqual({
      session: { latestCompletedRunId: 'run-1', headRunId: null },
    });
  });

  it('SUB-4: a run that is not at the head moves nobody', () => {
    expect(
      advanceSession(locked({}, { session: session({ headRunId: 'other' }), nextInSession: next }), false),
    ).toEqual({});
  });

  it('SUB-4a: a parallel run only joins the history', () => {
    const parallel = session({ mode: 'parallel', headRunId: null });
    expect(advanceSession(locked({}, { session: parallel }), true)).toEqual({
      session: { latestCompletedRunId: 'run-1' },
    });
    expect(advanceSession(locked({}, { session: parallel }), false)).toEqual({});
  });

  it('a run without a session moves nobody', () => {
    expect(advanceSession(locked(), true)).toEqual({});
  });
});
