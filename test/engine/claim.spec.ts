import { afterEach, describe, expect, it } from '@jest/globals';
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import type { LeaseView, LockedRun } from '../../lib/contracts/ports/run-store.port.js';
import type { RunRecord } from '../../lib/contracts/run.js';
import { RUN_STATUSES } from '../../lib/contracts/run-status.js';
import { emptyState } from '../../lib/engine/journal/run-state.js';
import { decideClaim, decideExhaustion, isClaimable, type ClaimOptions } from '../../lib/engine/claim-run.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { aRun, submit, totalsOf } from '../../packages/contract/lib/scenario.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const NOW = 1_700_000_100_000;
const start = { agent: 'support', prompt: 'hello' };

function locked(run: Partial<RunRecord>, lease: Partial<LeaseView> | null = null): LockedRun {
  return {
    now: NOW,
    run: aRun(NOW - 1_000, run),
    lease: lease && { owner: 'old', heartbeatAt: null, expiresAt: null, ...lease },
    interactions: [],
    inbox: [],
    lastMessageOrder: 0,
    session: null,
    nextInSession: null,
  };
}

const intent: JournalEntry = { type: 'model.started', at: NOW, key: 'r1.m1', attempt: 1, model: 'm', digest: 'd' };
/** Of a claimer that has folded the journal up to a sequence. */
const known = (sequence: number) => ({ ...emptyState('run-1'), sequence });
const options = (over: Partial<ClaimOptions> = {}): ClaimOptions => ({
  workerId: 'me',
  maxRecoveries: 5,
  definitionHash: 'hash-1',
  known: known(0),
  note: null,
  intents: [intent],
  totalsAfterIntents: totalsOf(1),
  ...over,
});
const running = (over: Partial<RunRecord> = {}): Partial<RunRecord> => ({
  status: 'running',
  attempt: 3,
  owner: 'old',
  claimedAt: NOW - 10_000,
  ...over,
});

describe('who may claim', () => {
  it('OWN-1: what is pending, what is due, and what lost its owner; nothing else', () => {
    const claimable = RUN_STATUSES.filter((status) => isClaimable(locked({ status, nextAttemptAt: null })));
    expect(claimable).toEqual(['pending', 'running', 'retry_wait']);
  });

  it("OWN-1: a backoff is due to the millisecond, by the store's clock", () => {
    for (const [nextAttemptAt, due] of [
      [NOW - 1, true],
      [NOW, true],
      [NOW + 1, false],
    ] as const)
      expect(isClaimable(locked({ status: 'retry_wait', nextAttemptAt }))).toBe(due);
  });

  it('OWN-4: a lease is over when its end has come, or when its owner is gone', () => {
    for (const [expiresAt, over] of [
      [NOW + 1, false],
      [NOW, true],
      [NOW - 1, true],
      [null, true],
    ] as const)
      expect(isClaimable(locked(running(), { expiresAt }))).toBe(over);
  });
});

describe('the decision about a claim', () => {
  it('OWN-1: sets owner and attempt in one write, and begins the first step with it', () => {
    const decision = decideClaim(locked({ wake: { cause: 'submitted' } }), options());
    expect(decision.run).toMatchObject({
      change: { status: 'running', attempt: 1, owner: 'me', claimedAt: NOW, startedAt: NOW, wake: null, recoveries: 0 },
      entries: [{ type: 'run.started', attempt: 1, cause: 'submitted', owner: 'me', unownedForMs: 1_000 }, intent],
      totals: totalsOf(1),
    });
    expect(decision.result).toMatchObject({ outcome: 'claimed', withIntents: true });
  });

  it('OWN-1: writes nothing for a run that somebody else has or that is not due', () => {
    for (const other of [
      locked(running(), { expiresAt: NOW + 1 }),
      locked({ status: 'retry_wait', nextAttemptAt: NOW + 1 }),
      locked({ status: 'cancelled' }),
    ])
      expect(decideClaim(other, options())).toEqual({ result: { outcome: 'lost' } });
  });

  it('JRN-3: intents of a state that the journal has passed meanwhile do not join it', () => {
    const decision = decideClaim(locked({ sequence: 5 }), options({ known: known(4) }));
    expect(decision.result).toMatchObject({ outcome: 'claimed', withIntents: false });
    expect(decision.run?.entries).toHaveLength(1);
    expect(decision.run?.totals).toBeUndefined();
  });

  const causes: [what: string, run: Partial<RunRecord>, lease: Partial<LeaseView> | null, entry: object][] = [
    ['submitted', { wake: { cause: 'submitted' } }, null, { cause: 'submitted' }],
    [
      'answered',
      { attempt: 1, owner: 'old', wake: { cause: 'answered', by: 'ann' } },
      null,
      { cause: 'answered', by: 'ann', previousOwner: 'old' },
    ],
    ['a granted budget', { attempt: 1, wake: { cause: 'budget', by: 'ann' } }, null, { cause: 'budget', by: 'ann' }],
    [
      'backoff',
      { attempt: 1, status: 'retry_wait', nextAttemptAt: NOW, owner: 'old' },
      null,
      { cause: 'backoff', previousOwner: 'old' },
    ],
    ['recovered', running(), { expiresAt: NOW - 700 }, { cause: 'recovered', previousOwner: 'old', unownedForMs: 700 }],
    [
      'recovered from an owner that is gone',
      running({ claimedAt: NOW - 900 }),
      null,
      { cause: 'recovered', unownedForMs: 900 },
    ],
    [
      'retried',
      { attempt: 1, wake: { cause: 'retried', by: 'ann', reason: 'fixed' } },
      null,
      { cause: 'retried', by: 'ann', reason: 'fixed' },
    ],
    ['resumed', { attempt: 1, wake: { cause: 'resumed' } }, null, { cause: 'resumed' }],
    [
      'takeover',
      {
        attempt: 1,
        owner: 'old',
        wake: { cause: 'takeover', by: 'ann', reason: 'dead', previousOwner: 'old', leaseRemainingMs: 5 },
      },
      null,
      { cause: 'takeover', by: 'ann', reason: 'dead', previousOwner: 'old', leaseRemainingMs: 5 },
    ],
    [
      'handover',
      { attempt: 1, owner: 'old', wake: { cause: 'handover', previousOwner: 'old' } },
      null,
      { cause: 'handover', previousOwner: 'old' },
    ],
    ['resolved', { attempt: 1, wake: { cause: 'resolved', by: 'ann' } }, null, { cause: 'resolved', by: 'ann' }],
  ];

  it.each(causes)('RUN-4: tells why, whose it was and how long nobody had it: %s', (_, run, lease, entry) => {
    const { entries } = decideClaim(locked(run, lease), options()).run ?? { entries: [] };
    const told = entries.find(({ type }) => type === 'run.started' || type === 'run.resumed');
    expect(told).toMatchObject({ type: (run.attempt ?? 0) === 0 ? 'run.started' : 'run.resumed', ...entry });
  });

  it('RUN-4: a takeover from an expired owner tells the lost lease first', () => {
    const { run } = decideClaim(locked(running(), { expiresAt: NOW - 700 }), options());
    expect(run?.entries).toMatchObject([
      { type: 'run.lease_expired', owner: 'old', expiredAt: NOW - 700 },
      { type: 'run.resumed', attempt: 4 },
    ]);
  });

  it('JRN-5: the first step of a run that lost its owner is decided by its recovery, not by what was prepared', () => {
    expect(decideClaim(locked(running(), null), options()).result).toMatchObject({ withIntents: false });
  });

  it('JRN-7: an accepted definition change is journaled with both hashes', () => {
    const { run } = decideClaim(locked({}), options({ definitionHash: 'hash-2' }));
    expect(run?.change.definitionHash).toBe('hash-2');
    expect(run?.entries[0]).toMatchObject({ definitionChange: { from: 'hash-1', to: 'hash-2' } });
  });

  it('RUN-6: active time of an owner that vanished counts up to the end of its lease', () => {
    const lost = running({ activeMs: 100, claimedAt: NOW - 10_000 });
    expect(decideClaim(locked(lost, { expiresAt: NOW - 4_000 }), options()).run?.change.activeMs).toBe(6_100);
    expect(decideClaim(locked(lost, null), options()).run?.change.activeMs).toBe(100);
  });

  const counts: [what: string, run: Partial<RunRecord>, recoveries: number][] = [
    ['a lost lease without a result', running({ recoveries: 2, totals: totalsOf(3), resultsAtClaim: 3 }), 3],
    ['a lost lease after a result', running({ recoveries: 2, totals: totalsOf(4), resultsAtClaim: 3 }), 1],
    ['a hand-over after a result', { attempt: 1, recoveries: 2, totals: totalsOf(4), resultsAtClaim: 3 }, 0],
    ['a hand-over without one', { attempt: 1, recoveries: 2, totals: totalsOf(3), resultsAtClaim: 3 }, 2],
  ];

  it.each(counts)(
    'OWN-5: counts claims in a row that followed a lost lease without progress: %s',
    (_, run, recoveries) => {
      expect(decideClaim(locked(run), options()).run?.change.recoveries).toBe(recoveries);
    },
  );

  it('OWN-5: hands a run that used them up to a person instead, without an attempt', () => {
    const decision = decideClaim(locked(running({ recoveries: 5 }), { expiresAt: NOW - 1 }), options());
    expect(decision.result).toMatchObject({ outcome: 'exhausted' });
    expect(decision.run).toMatchObject({
      change: { status: 'needs_attention', attention: { reason: 'recovery_exhausted' } },
    });
    expect(decision.run?.change.attempt).toBeUndefined();
    expect(decideClaim(locked(running({ recoveries: 4 }), { expiresAt: NOW - 1 }), options()).result.outcome).toBe(
      'claimed',
    );
  });

  it("OWN-5: the sweep's share decides the same", () => {
    expect(decideExhaustion(locked(running({ recoveries: 5 }), null), 5).run?.change.status).toBe('needs_attention');
    for (const other of [
      locked(running({ recoveries: 4 }), null),
      locked(running({ recoveries: 5 }), { expiresAt: NOW + 1 }),
      locked({ recoveries: 9 }),
    ])
      expect(decideExhaustion(other, 5)).toEqual({});
  });

  it('SUB-4a: fixes the history of a parallel run at its first claim, and only then', () => {
    const session = {
      id: 's',
      mode: 'parallel',
      owner: null,
      headRunId: null,
      latestCompletedRunId: 'before',
      lastOrder: 2,
      startedOrder: 2,
    } as const;
    const fresh = { ...locked({ historyCaptured: false }), session };
    expect(decideClaim(fresh, options()).run?.change).toMatchObject({ historyCaptured: true, historyRunId: 'before' });
    expect(decideClaim(locked({ historyCaptured: true, historyRunId: 'x' }), options()).run?.change).not.toHaveProperty(
      'historyRunId',
    );
  });
});

describe('claiming', () => {
  it('OWN-1: of many workers one gets a run, and it is executed once (B007)', async () => {
    const store = new MemoryRunStore();
    const reader = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const runs = await Promise.all(Array.from({ length: 40 }, () => reader.runs.start(start)));
    let requests = 0;
    const model = () => scriptedModel([() => (requests++, { text: 'done' })], { place: 'transcript' });
    // All of them look at the same moment and see the same runs.
    const gates = await Promise.all(
      [1, 2, 3, 4].map(async () => {
        const connection = new FailingStore(store);
        const gate = connection.hold('due', { after: true });
        await engineOver(connection, agent(model()));
        return gate;
      }),
    );
    await Promise.all(gates.map(({ reached }) => reached));
    for (const { open } of gates) open();
    const ended = await Promise.all(runs.map(({ id }) => reader.runs.result(id)));
    expect(ended.every(({ status, attempt }) => status === 'completed' && attempt === 1)).toBe(true);
    expect(requests).toBe(40);
  });

  it('OWN-6: a worker claims only what it has registered', async () => {
    const store = new MemoryRunStore();
    const both = [agent(scriptedModel([])), agent(scriptedModel([]), [], { name: 'other' })];
    const reader = await engineOver(store, both, { worker: false });
    const mine = await reader.runs.start(start);
    const others = await reader.runs.start({ ...start, agent: 'other' });
    const worker = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
    expect((await worker.runs.result(mine.id)).status).toBe('completed');
    await worker.worker.tick();
    expect(await rowOf(store, others.id)).toMatchObject({ status: 'pending', attempt: 0 });
  });

  it('SUB-6: a run of a newer journal contract is left alone by an older engine', async () => {
    const store = new MemoryRunStore();
    await submit(store, { id: 'newer', contractVersion: 2 });
    const worker = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
    await worker.worker.tick();
    await worker.recovery.reconcile();
    expect(await rowOf(store, 'newer')).toMatchObject({ status: 'pending', attempt: 0, revision: 1 });
  });

  it('OWN-5: a run that keeps killing its process ends with a person after maxRecoveries', async () => {
    const store = new MemoryRunStore();
    const run = { id: '' };
    for (let crash = 0; crash <= 3; crash++) {
      const model = scriptedModel([{ hang: 'deaf' }]);
      const engine = await mortalEngine(store, agent(model), { maxRecoveries: 3 });
      if (crash === 0) run.id = (await engine.runs.start(start)).id;
      await model.requested(1);
      await engine.crash();
    }
    const last = await engineOver(store, agent(scriptedModel([{ text: 'never' }])), { maxRecoveries: 3 });
    expect(await last.runs.result(run.id)).toMatchObject({
      status: 'needs_attention',
      attention: { reason: 'recovery_exhausted' },
      attempt: 4,
      recoveries: 3,
    });
    expect(await entriesOf(store, run.id, 'run.lease_expired')).toHaveLength(4);
    // And it is not lost: somebody who has found the cause lets it go on.
    await last.runs.retry(run.id);
    expect((await last.runs.result(run.id)).status).toBe('completed');
  });

  it('OWN-5: a run that makes progress between its crashes is recovered as often as it takes', async () => {
    const store = new MemoryRunStore();
    const steps = Array.from({ length: 6 }, () => ({ calls: [{ name: 'work' }] }));
    const run = { id: '' };
    for (let crash = 0; crash < 5; crash++) {
      // Answers one step more than the process before it.
      const model = scriptedModel([...steps.slice(0, crash + 1), { hang: 'deaf' }], { place: 'transcript' });
      const engine = await mortalEngine(store, agent(model, [tool('work', () => 'ok')]), { maxRecoveries: 2 });
      if (crash === 0) run.id = (await engine.runs.start(start)).id;
      await until(async () => (await engine.connection.inner.load(run.id))?.run.totals.turn === crash + 2);
      await engine.crash();
    }
    const last = await engineOver(
      store,
      agent(scriptedModel([...steps.slice(0, 5), { text: 'done' }], { place: 'transcript' }), [
        tool('work', () => 'ok'),
      ]),
      { maxRecoveries: 2 },
    );
    expect(await last.runs.result(run.id)).toMatchObject({ status: 'completed', attempt: 6 });
  });

  it('OWN-5: an expired run is taken over within a lease and a sweep', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const settings = { leaseMs: 6_000, pollMs: 1_000, pollIdleMs: 1_000 };
    const hanging = scriptedModel([{ hang: 'deaf' }]);
    const dying = new FailingStore(store);
    const first = await engineOver(dying, agent(hanging), settings, clock);
    const second = await engineOver(store, agent(scriptedModel([{ text: 'done' }])), settings, clock);
    const run = await first.runs.start(start);
    await clock.advance(1_000);
    dying.kill();
    first.forget();
    await clock.advance(5_999 - 1_000);
    await second.recovery.reconcile();
    expect(await second.runs.get(run.id)).toMatchObject({ status: 'running', attempt: 1 });
    await clock.advance(1_001);
    await second.recovery.reconcile();
    await clock.advance(0);
    expect(await second.runs.get(run.id)).toMatchObject({ status: 'completed', attempt: 2 });
    expect((await second.metrics.read()).offenders).toBe(0);
  });

  it('STO-4: a journal that cannot be read blocks only its run, before an attempt is reserved', async () => {
    const store = new MemoryRunStore();
    await submit(store, { id: 'bad' }, { entries: [{ type: 'tool.completed', at: 1, key: 'r1.m1.t0', output: 1 }] });
    await submit(store, { id: 'good' });
    const worker = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
    expect((await worker.runs.result('good')).status).toBe('completed');
    await until(async () => (await rowOf(store, 'bad')).status === 'needs_attention');
    expect(await rowOf(store, 'bad')).toMatchObject({ attempt: 0, attention: { reason: 'journal_corrupt' } });
    expect(worker.worker.status().state).toBe('ready');
    expect((await journalOf(store, 'bad')).at(-1)).toMatchObject({ type: 'run.attention_needed' });
    expect(worker.logged.filter(({ fields }) => fields.runId === 'bad')).toEqual([
      {
        level: 'error',
        message: 'a run needs attention',
        fields: { runId: 'bad', agent: 'support', reason: 'journal_corrupt', operation: undefined },
      },
    ]);
    expect(worker.told.filter(({ runId }) => runId === 'bad')).toMatchObject([
      { sequence: 2, type: 'run.attention_needed', details: { reason: 'journal_corrupt' } },
    ]);
  });
});

const REPLY = {
  content: [{ type: 'text' as const, text: 'done' }],
  finishReason: 'stop' as const,
  usage: { totalTokens: 1 },
};

describe('taking a run from a live owner', () => {
  async function held() {
    const store = new MemoryRunStore();
    const hanging = scriptedModel([{ hang: 'deaf' }]);
    const first = await engineOver(store, agent(hanging));
    const run = await first.runs.start(start);
    await hanging.requested(1);
    const second = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
    return { store, first, second, run };
  }

  it('OWN-4: is refused, with the owner and the end of its lease', async () => {
    const { first, second, run, store } = await held();
    await expect(second.runs.resume(run.id)).rejects.toMatchObject({
      code: 'RUN_LEASED',
      details: { owner: first.worker.workerId, expiresAt: expect.any(Date) },
    });
    expect((await rowOf(store, run.id)).attempt).toBe(1);
    await first.runs.cancel(run.id);
  });

  it.each([
    ['no confirmation', { allowRunningTakeover: true }],
    ['a confirmation by nobody', { allowRunningTakeover: true, confirmation: { by: '', reason: 'x' } }],
    ['a confirmation without a reason', { allowRunningTakeover: true, confirmation: { by: 'ann' } }],
    ['a confirmation that is text', { allowRunningTakeover: true, confirmation: 'yes' }],
    ['a flag that is text', { allowRunningTakeover: 'true', confirmation: { by: 'ann', reason: 'x' } }],
  ])('OWN-4: is refused with %s', async (_, options) => {
    const { first, second, run, store } = await held();
    await expect(second.runs.resume(run.id, options as never)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect((await rowOf(store, run.id)).attempt).toBe(1);
    await first.runs.cancel(run.id);
  });

  it('OWN-4: with a confirmation is done and journaled, with the lease time that was left; the old owner is fenced', async () => {
    const { first, second, run, store } = await held();
    await second.runs.resume(run.id, {
      allowRunningTakeover: true,
      confirmation: { by: 'ann', reason: 'the machine burned' },
    });
    // The first process may be the one that claims it anew: it is alive after all.
    await until(async () => (await rowOf(store, run.id)).attempt === 2);
    expect(await entriesOf(store, run.id, 'run.takeover_requested')).toMatchObject([
      { by: 'ann', reason: 'the machine burned', leaseRemainingMs: expect.any(Number) },
    ]);
    expect(await entriesOf(store, run.id, 'run.resumed')).toMatchObject([
      { cause: 'takeover', by: 'ann', reason: 'the machine burned', previousOwner: first.worker.workerId },
    ]);
    await until(() => first.worker.status().activeRuns + second.worker.status().activeRuns <= 1);
    await second.runs.cancel(run.id).catch(() => undefined);
  });

  it('OWN-4: in the process of the owner itself its call is told to stop, and the run is claimed anew', async () => {
    const store = new MemoryRunStore();
    const aborted = signal();
    const model = {
      name: 'deaf at first',
      generate: ({ signal: stop }: { signal: AbortSignal }) => {
        if (calls++ > 0) return Promise.resolve(REPLY);
        stop.addEventListener('abort', () => aborted.resolve());
        return new Promise<never>(() => undefined);
      },
    };
    let calls = 0;
    const engine = await engineOver(store, agent(model));
    const run = await engine.runs.start(start);
    await engine.runs.resume(run.id, { allowRunningTakeover: true, confirmation: { by: 'ann', reason: 'hangs' } });
    await aborted.promise;
    expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed', attempt: 2 });
  });

  it('OWN-4: an expired lease is resumed by anyone, without any flag', async () => {
    const { first, second, run, store } = await held();
    await store.retireWorker(first.worker.workerId);
    await second.runs.resume(run.id);
    expect(await second.runs.result(run.id)).toMatchObject({ status: 'completed', attempt: 2 });
  });
});
