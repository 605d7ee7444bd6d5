import { describe, expect, it } from '@jest/globals';
import type { FinishReason } from '../../lib/contracts/journal-entry.js';
import { emptyState, type CallState, type RunState } from '../../lib/engine/journal/run-state.js';
import { nextAction, type ActionFacts } from '../../lib/engine/next-action.js';

function facts(over: Partial<Omit<ActionFacts, 'inFlight'>> & { inFlight?: string[] } = {}): ActionFacts {
  const { inFlight = [], ...rest } = over;
  return {
    inFlight: new Set(inFlight),
    toolConcurrency: 8,
    maxTurns: 20,
    maxOperations: 10_000,
    maxModelAttempts: 3,
    allowEmptyAnswer: false,
    budget: null,
    interrupt: false,
    isExclusive: ({ name }) => name === 'exclusive',
    ...rest,
  };
}

function call(key: string, status: CallState['status'], over: Partial<CallState> = {}): CallState {
  return {
    key,
    callId: key,
    name: 'work',
    toolVersion: '1',
    recovery: 'manual',
    input: {},
    edits: [],
    approval: null,
    questions: null,
    interactionId: null,
    methodInteractions: [],
    withdrawn: 0,
    given: {},
    openAttempts: 0,
    steps: new Map(),
    status,
    attempts: 0,
    interruptedBy: null,
    problem: null,
    outcome: status === 'done' ? 'success' : null,
    output: null,
    ...over,
  };
}

function state(over: Partial<RunState> = {}): RunState {
  return { ...emptyState('run'), messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }], ...over };
}

/** After a reply: with these calls, or without any. */
function replied(finishReason: FinishReason, calls: CallState[] = [], text = 'said'): RunState {
  const results = calls.length > 0 && calls.every(({ status }) => status === 'done');
  return state({
    finishReason,
    calls,
    modelOperations: 1,
    totals: { ...emptyState('run').totals, turn: 1 },
    messages: [
      ...state().messages,
      { role: 'assistant', content: [{ type: 'text', text }] },
      ...(results ? [{ role: 'tool' as const, content: [] }] : []),
    ],
  });
}

const keys = (action: ReturnType<typeof nextAction>) =>
  action.do === 'start_calls' ? action.calls.map(({ key }) => key) : action.do;

describe('what a run does next', () => {
  it('begins with the model', () => {
    expect(nextAction(state(), facts())).toEqual({ do: 'call_model', key: 'r1.m1', attempt: 1 });
    expect(nextAction(state({ generation: 3, modelOperations: 4 }), facts())).toMatchObject({ key: 'r3.m5' });
  });

  it('MOD-2: makes an unfinished request again under the next number, while failures allow it', () => {
    const unfinished = (failures: number, attempts = 5) =>
      state({ model: { key: 'r1.m1', attempts, failures, status: 'failed' } });
    expect(nextAction(unfinished(2), facts())).toEqual({ do: 'call_model', key: 'r1.m1', attempt: 6 });
    expect(nextAction(unfinished(3), facts())).toMatchObject({
      do: 'fail',
      error: { code: 'MODEL_RETRIES_EXHAUSTED' },
    });
    expect(nextAction(unfinished(0), facts({ inFlight: ['r1.m1'] }))).toEqual({ do: 'await' });
  });

  it('I5: no request while a call owes its result', () => {
    for (const status of ['ready', 'waiting', 'started', 'uncertain'] as const) {
      const action = nextAction(
        replied('tool-calls', [call('a', 'done'), call('b', status)]),
        facts({ inFlight: status === 'started' ? ['b'] : [] }),
      );
      expect(action.do).not.toBe('call_model');
    }
    expect(nextAction(replied('tool-calls', [call('a', 'done'), call('b', 'done')]), facts())).toMatchObject({
      do: 'call_model',
      key: 'r1.m2',
    });
  });

  it('JRN-5a: begins ready calls in call order, up to the concurrency', () => {
    const four = ['a', 'b', 'c', 'd'].map((key) => call(key, 'ready'));
    expect(keys(nextAction(replied('tool-calls', four), facts()))).toEqual(['a', 'b', 'c', 'd']);
    expect(keys(nextAction(replied('tool-calls', four), facts({ toolConcurrency: 1 })))).toEqual(['a']);
    const oneRuns = [call('a', 'started'), ...four.slice(1)];
    expect(keys(nextAction(replied('tool-calls', oneRuns), facts({ toolConcurrency: 3, inFlight: ['a'] })))).toEqual([
      'b',
      'c',
    ]);
    expect(keys(nextAction(replied('tool-calls', oneRuns), facts({ toolConcurrency: 1, inFlight: ['a'] })))).toBe(
      'await',
    );
  });

  it('JRN-5b: an exclusive call is begun alone, and nothing is begun beside it', () => {
    const exclusive = (key: string, status: CallState['status'] = 'ready') => call(key, status, { name: 'exclusive' });
    expect(keys(nextAction(replied('tool-calls', [exclusive('a'), call('b', 'ready')]), facts()))).toEqual(['a']);
    expect(
      keys(nextAction(replied('tool-calls', [call('a', 'ready'), exclusive('b'), call('c', 'ready')]), facts())),
    ).toEqual(['a']);
    expect(
      keys(
        nextAction(replied('tool-calls', [exclusive('a', 'started'), call('b', 'ready')]), facts({ inFlight: ['a'] })),
      ),
    ).toBe('await');
    expect(
      keys(nextAction(replied('tool-calls', [call('a', 'started'), exclusive('b')]), facts({ inFlight: ['a'] }))),
    ).toBe('await');
  });

  it('PPL-1: calls that need nobody run first; then the run waits for people', () => {
    const calls = [call('a', 'waiting'), call('b', 'ready')];
    expect(keys(nextAction(replied('tool-calls', calls), facts()))).toEqual(['b']);
    expect(
      nextAction(replied('tool-calls', [call('a', 'waiting'), call('b', 'started')]), facts({ inFlight: ['b'] })),
    ).toEqual({ do: 'await' });
    expect(nextAction(replied('tool-calls', [call('a', 'waiting'), call('b', 'done')]), facts())).toMatchObject({
      do: 'suspend',
      waitingFor: ['approval'],
    });
  });

  it('JRN-10: blocked calls need a person once everything else of the turn is decided; all of them are named', () => {
    const calls = [call('a', 'uncertain'), call('b', 'ready'), call('c', 'uncertain'), call('d', 'waiting')];
    expect(keys(nextAction(replied('tool-calls', calls), facts()))).toEqual(['b']);
    calls[1] = call('b', 'done');
    expect(nextAction(replied('tool-calls', calls), facts())).toMatchObject({
      do: 'call_attention',
      attention: { reason: 'uncertain_outcome', operationKey: 'a', operations: ['a', 'c'] },
    });
  });

  it('MOD-3: a recorded reply without calls is the answer; an empty one is an answer only where the agent says so', () => {
    expect(nextAction(replied('stop'), facts())).toEqual({ do: 'complete', output: 'said' });
    expect(nextAction(replied('stop', [], ''), facts())).toEqual({ do: 'complete', output: null });
    expect(nextAction(replied('stop', [], ''), facts({ allowEmptyAnswer: true }))).toEqual({
      do: 'complete',
      output: '',
    });
  });

  it.each(['stop', 'tool-calls', 'length', 'pause'] as const)(
    'MOD-3: answered calls of a reply that ended with %s let the loop go on',
    (finishReason) => {
      expect(nextAction(replied(finishReason, [call('a', 'done')]), facts()).do).toBe('call_model');
    },
  );

  it('MOD-3: a turn that its model paused goes on with another request, within the turn limit', () => {
    const paused = replied('pause');
    expect(nextAction(paused, facts())).toEqual({ do: 'call_model', key: 'r1.m2', attempt: 1 });
    expect(nextAction(paused, facts({ maxTurns: 1 }))).toMatchObject({ error: { code: 'MAX_TURNS_EXCEEDED' } });
  });

  it('BUD-1: a failed attempt that used the budget up is not repeated before more is granted', () => {
    const failed = state({ model: { key: 'r1.m1', attempts: 1, failures: 1, status: 'failed' } });
    failed.totals.usage.totalTokens = 15;
    expect(nextAction(failed, facts({ budget: 15 }))).toEqual({ do: 'suspend', waitingFor: ['budget'] });
    expect(nextAction(failed, facts({ budget: 16 })).do).toBe('call_model');
  });

  it('STR-1: a message that was delivered after the answer makes the run take another turn', () => {
    const steered = replied('stop');
    steered.messages.push({ role: 'user', kind: 'steering', content: [{ type: 'text', text: 'also' }] });
    expect(nextAction(steered, facts()).do).toBe('call_model');
  });

  it('JRN-12: the turn limit is looked at before a new request, not before repeating one', () => {
    const over = replied('tool-calls', [call('a', 'done')]);
    over.totals = { ...over.totals, turn: 20 };
    expect(nextAction(over, facts())).toMatchObject({ do: 'fail', error: { code: 'MAX_TURNS_EXCEEDED' } });
    expect(
      nextAction({ ...over, calls: [], model: { key: 'r1.m20', attempts: 1, failures: 0, status: 'started' } }, facts())
        .do,
    ).toBe('call_model');
  });

  it('JRN-8: drift comes before everything', () => {
    const drifted = { ...replied('tool-calls', [call('a', 'ready')]), drift: 'r1.m1' };
    expect(nextAction(drifted, facts())).toMatchObject({
      do: 'call_attention',
      attention: { reason: 'input_drift', operationKey: 'r1.m1' },
    });
  });

  it('I11: never answers with a wait for nobody', () => {
    // Begun, not executed here, and nobody to ask: the recovery should have decided about it.
    expect(nextAction(replied('tool-calls', [call('a', 'started')]), facts()).do).toBe('call_attention');
  });
});
