import { describe, expect, it } from '@jest/globals';
import type { CallVerdict, JournalEntry, SequencedEntry } from '../../../lib/contracts/journal-entry.js';
import type { AssistantPart } from '../../../lib/contracts/message.js';
import { JournalFold } from '../../../lib/engine/journal/fold-journal.js';
import { emptyState, type RunState } from '../../../lib/engine/journal/run-state.js';
import { Sha256Digester } from '../../../lib/system/system-ports.js';
import { recordedFailure, recordedText } from '../../../lib/engine/values/recorded-error.js';

const fold = new JournalFold(new Sha256Digester());
const at = 1_700_000_000_000;

function folded(entries: readonly JournalEntry[], history: Parameters<JournalFold['begin']>[1] = []): RunState {
  const state = emptyState('run');
  fold.begin(state, history);
  for (const entry of entries) fold.apply(state, entry);
  return state;
}

const submitted: JournalEntry = {
  type: 'run.submitted',
  at,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }],
};

function started(state: RunState, key = 'r1.m1', attempt = 1): JournalEntry {
  return { type: 'model.started', at, key, attempt, model: 'm', digest: state.digest };
}

/** A reply that calls the tools, each as a key `<model>.t<n>`. */
function replied(names: string[], verdict: Partial<CallVerdict> = {}, key = 'r1.m1'): JournalEntry {
  const calls = names.map((name, n): CallVerdict => ({
    key: `${key}.t${n}`,
    callId: `${key}-${n}`,
    name,
    toolVersion: '1',
    recovery: 'manual',
    ...verdict,
  }));
  const content: AssistantPart[] = [
    { type: 'text', text: 'thinking' },
    ...calls.map(({ callId, name }, n): AssistantPart => ({ type: 'tool-call', callId, name, arguments: { n } })),
  ];
  return {
    type: 'model.completed',
    at,
    key,
    message: { role: 'assistant', content },
    finishReason: names.length > 0 ? 'tool-calls' : 'stop',
    usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
    calls,
  };
}

const begun = (key: string, attempt = 1): JournalEntry => ({
  type: 'tool.started',
  at,
  key,
  attempt,
  recovery: 'manual',
  digest: 'd',
});
const done = (key: string, output: string): JournalEntry => ({ type: 'tool.completed', at, key, output });

/** Up to a reply with two calls. */
function called(verdict: Partial<CallVerdict> = {}): RunState {
  const state = folded([submitted]);
  for (const entry of [started(state), replied(['a', 'b'], verdict)]) fold.apply(state, entry);
  return state;
}

const statusOf = (state: RunState) => state.calls.map(({ status }) => status);

describe('the fold of a journal', () => {
  it('JRN-4: counts every entry, known or not', () => {
    const unknown = { type: 'something.new', at } as unknown as JournalEntry;
    expect(folded([submitted, unknown, unknown]).sequence).toBe(3);
  });

  it('JRN-4: gives messages ids that follow from their place, the same in every process (B036)', () => {
    const state = called();
    for (const entry of [begun('r1.m1.t0'), begun('r1.m1.t1'), done('r1.m1.t1', 'b'), done('r1.m1.t0', 'a')])
      fold.apply(state, entry);
    expect(state.messages.map(({ id, role }) => [role, id])).toEqual([
      ['user', 'run/r1.i0'],
      ['assistant', 'run/r1.m1'],
      ['tool', 'run/r1.m1/results'],
    ]);
  });

  it('I5: results become one message, in call order, when the last of them is in', () => {
    const state = called();
    fold.apply(state, done('r1.m1.t1', 'b'));
    expect(state.messages).toHaveLength(2);
    fold.apply(state, done('r1.m1.t0', 'a'));
    expect(state.messages[2]).toMatchObject({
      role: 'tool',
      content: [
        { callId: 'r1.m1-0', name: 'a', output: 'a', outcome: 'success' },
        { callId: 'r1.m1-1', name: 'b', output: 'b', outcome: 'success' },
      ],
    });
  });

  it('I9: usage is the sum of committed replies; a failed attempt adds nothing', () => {
    const state = folded([submitted]);
    fold.apply(state, started(state));
    fold.apply(state, {
      type: 'model.attempt_failed',
      at,
      key: 'r1.m1',
      attempt: 1,
      error: recordedFailure('X', 'x'),
    });
    expect(state.totals).toMatchObject({ turn: 1, results: 0, usage: { totalTokens: 0 } });
    expect(state.model).toMatchObject({ attempts: 1, failures: 1, status: 'failed' });
    fold.apply(state, started(state, 'r1.m1', 2));
    fold.apply(state, replied([]));
    expect(state.totals).toMatchObject({ turn: 1, results: 1, usage: { totalTokens: 15, unknownCalls: 0 } });
    expect(state.model).toBeNull();
  });

  it('MOD-5: a reply without a total is counted as unknown', () => {
    const state = folded([submitted]);
    fold.apply(state, started(state));
    fold.apply(state, {
      ...(replied([]) as Extract<JournalEntry, { type: 'model.completed' }>),
      usage: { inputTokens: 3 },
    });
    expect(state.totals.usage).toMatchObject({ inputTokens: 3, totalTokens: 0, unknownCalls: 1 });
  });

  it('JRN-11: an explicit retry clears the failures of the unfinished call, not its attempt number', () => {
    const state = folded([submitted]);
    fold.apply(state, started(state));
    fold.apply(state, {
      type: 'model.attempt_failed',
      at,
      key: 'r1.m1',
      attempt: 1,
      error: recordedFailure('X', 'x'),
    });
    fold.apply(state, { type: 'run.retried', at });
    expect(state.model).toMatchObject({ attempts: 1, failures: 0 });
  });

  const ends: [entry: JournalEntry, outcome: string, operation: string, results: number][] = [
    [done('r1.m1.t0', 'x'), 'success', 'completed', 1],
    [
      { type: 'tool.failed', at, key: 'r1.m1.t0', outcome: 'error', error: recordedFailure('X', 'x') },
      'error',
      'failed',
      1,
    ],
    [
      { type: 'tool.failed', at, key: 'r1.m1.t0', outcome: 'invalid_arguments', error: recordedFailure('X', 'x') },
      'invalid_arguments',
      'failed',
      1,
    ],
    [
      { type: 'tool.failed', at, key: 'r1.m1.t0', outcome: 'unknown_tool', error: recordedFailure('X', 'x') },
      'unknown_tool',
      'failed',
      1,
    ],
    [
      { type: 'tool.failed', at, key: 'r1.m1.t0', outcome: 'not_executed', error: recordedFailure('X', 'x') },
      'not_executed',
      'not_run',
      1,
    ],
    [{ type: 'tool.denied', at, key: 'r1.m1.t0', by: 'guard', reason: recordedText('no') }, 'denied', 'denied', 1],
    [
      { type: 'tool.uncertain', at, key: 'r1.m1.t0', interruptedBy: 'crash', reportedToModel: true },
      'unknown',
      'uncertain',
      1,
    ],
    [
      { type: 'tool.resolved', at, key: 'r1.m1.t0', resolution: { output: 'x' }, by: 'ann', reconciled: true },
      'success',
      'completed',
      1,
    ],
    [
      {
        type: 'tool.resolved',
        at,
        key: 'r1.m1.t0',
        resolution: { error: { message: 'x' } },
        by: 'ann',
        reconciled: true,
      },
      'error',
      'failed',
      1,
    ],
    [{ type: 'tool.probed', at, key: 'r1.m1.t0', result: 'happened', output: 'x' }, 'success', 'completed', 1],
  ];

  it.each(ends.map(([entry, ...rest]) => [entry.type, entry, ...rest] as const))(
    'MOD-4: %s ends a call, and is one result',
    (_, entry, outcome, operation, results) => {
      const state = called();
      fold.apply(state, begun('r1.m1.t0'));
      fold.apply(state, entry);
      expect(state.calls[0]).toMatchObject({ status: 'done', outcome });
      expect(state.operations.get('r1.m1.t0')).toMatchObject({ status: operation, attempts: 1 });
      expect(state.totals.results).toBe(1 + results);
    },
  );

  const reopened: JournalEntry[] = [
    { type: 'tool.released', at, key: 'r1.m1.t0' },
    { type: 'tool.probed', at, key: 'r1.m1.t0', result: 'did-not-happen' },
    { type: 'tool.resolved', at, key: 'r1.m1.t0', resolution: { notHappened: true }, by: 'ann', reconciled: true },
  ];

  it.each(reopened.map((entry) => [entry.type, entry] as const))(
    'JRN-5a: after %s a call may be begun again, and has no result',
    (_, entry) => {
      const state = called();
      fold.apply(state, begun('r1.m1.t0'));
      fold.apply(state, entry);
      expect(state.calls[0]).toMatchObject({ status: 'ready', attempts: 1, outcome: null, interruptedBy: null });
      expect(state.totals.results).toBe(1);
      fold.apply(state, begun('r1.m1.t0', 2));
      expect(state.calls[0]).toMatchObject({ status: 'started', attempts: 2 });
    },
  );

  it('JRN-5: an uncertain call that nobody was told about blocks; what nobody knows stays so', () => {
    const state = called();
    fold.apply(state, begun('r1.m1.t0'));
    fold.apply(state, { type: 'tool.probed', at, key: 'r1.m1.t0', result: 'unknown' });
    expect(statusOf(state)).toEqual(['started', 'ready']);
    fold.apply(state, { type: 'tool.uncertain', at, key: 'r1.m1.t0', interruptedBy: 'crash', reportedToModel: false });
    expect(statusOf(state)).toEqual(['uncertain', 'ready']);
    expect(state.totals.results).toBe(1);
  });

  it('PPL-1a: a call with an approval waits; its verdict and its validated input come from the journal', () => {
    const state = called({ approval: { reason: 'large' }, input: { n: 7, unit: 'km' } });
    expect(statusOf(state)).toEqual(['waiting', 'waiting']);
    expect(state.calls[0]).toMatchObject({ input: { n: 7, unit: 'km' }, approval: { reason: 'large' } });
  });

  it('JRN-8: a request whose digest is not that of the messages before it is drift; the first one is named', () => {
    const state = folded([submitted]);
    fold.apply(state, { ...(started(state) as Extract<JournalEntry, { type: 'model.started' }>), digest: 'other' });
    expect(state.drift).toBe('r1.m1');
    fold.apply(state, replied([]));
    fold.apply(state, {
      ...(started(state, 'r1.m2') as Extract<JournalEntry, { type: 'model.started' }>),
      digest: 'other',
    });
    expect(state.drift).toBe('r1.m1');
  });

  it('JRN-8: the digest is a chain over what was added, history included, and does not depend on key order (decision digests-are-a-chain)', () => {
    const message = (providerOptions: object) => ({
      role: 'user' as const,
      id: 'x',
      content: [{ type: 'text' as const, text: 'a', providerOptions }],
    });
    const one = folded([submitted], [message({ a: 1, b: 2 }) as never]);
    const other = folded([submitted], [message({ b: 2, a: 1 }) as never]);
    expect(one.digest).toBe(other.digest);
    expect(one.digest).not.toBe(folded([submitted]).digest);
    expect(folded([submitted], [message({ a: 2, b: 2 }) as never]).digest).not.toBe(one.digest);
  });

  it('MOD-9: ids of calls in the history are taken', () => {
    const state = folded(
      [submitted],
      [
        { role: 'assistant', content: [{ type: 'tool-call', callId: 'taken', name: 't', arguments: {} }] },
        { role: 'tool', content: [{ type: 'tool-result', callId: 'taken', name: 't', outcome: 'success', output: 1 }] },
      ],
    );
    expect([...state.callIds]).toEqual(['taken']);
    expect(state.historyLength).toBe(2);
    expect(state.calls).toEqual([]);
  });

  it('STO-4: an entry about a call that no reply asked for is an error, not a guess', () => {
    const state = called();
    for (const entry of [done('r1.m9.t0', 'x'), begun('r1.m1.t7'), done('__proto__', 'x')])
      expect(() => fold.apply(state, entry)).toThrow(/no call/);
  });

  it('JRN-4: is the same in one go and piece by piece, whatever the cut', () => {
    const state = folded([submitted]);
    const entries: JournalEntry[] = [submitted];
    const add = (...more: JournalEntry[]) => more.forEach((entry) => (entries.push(entry), fold.apply(state, entry)));
    add(
      started(state),
      replied(['a', 'b']),
      begun('r1.m1.t0'),
      done('r1.m1.t0', 'a'),
      begun('r1.m1.t1'),
      done('r1.m1.t1', 'b'),
    );
    add(started(state, 'r1.m2'), replied([], {}, 'r1.m2'), { type: 'run.completed', at });
    const stored = entries.map((entry, index): SequencedEntry => ({
      ...(JSON.parse(JSON.stringify(entry)) as JournalEntry),
      sequence: index + 1,
    }));
    // Arguments are not those of the entries made here.
    const replayable = stored.map((entry) =>
      entry.type === 'tool.started'
        ? {
            ...entry,
            digest: new Sha256Digester().digest(new Sha256Digester().canonical({ n: Number(entry.key.at(-1)) })),
          }
        : entry,
    );
    for (let cut = 0; cut <= replayable.length; cut++) {
      const again = emptyState('run');
      fold.begin(again, []);
      fold.replay(again, replayable.slice(0, cut));
      fold.replay(again, replayable.slice(cut));
      expect(again.messages).toEqual(state.messages);
      expect(again.totals).toEqual(state.totals);
      expect(again.digest).toBe(state.digest);
      expect(again.drift).toBeNull();
    }
  });
});
