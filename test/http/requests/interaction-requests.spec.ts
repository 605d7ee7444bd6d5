import { AgentRunsError } from '../../../lib/errors/agent-runs.error.js';
import {
  BUDGET_BODY,
  DECISION_BODY,
  INTERACTION_LIST_QUERY,
  readBody,
  readQuery,
  RESTART_BODY,
  STEER_BODY,
} from '../../../lib/http/requests/http-schemas.js';

const readDecision = (body: unknown) => readBody(DECISION_BODY, body);
const readSteer = (body: unknown) => readBody(STEER_BODY, body);
const readRestart = (body: unknown) => readBody(RESTART_BODY, body);
const readBudgetDecision = (body: unknown) => readBody(BUDGET_BODY, body);
const readInteractionList = (query: unknown) => readQuery(INTERACTION_LIST_QUERY, query);

function fieldsOf(read: () => unknown): string[] {
  try {
    read();
  } catch (error) {
    if (!AgentRunsError.is(error, 'INVALID_REQUEST')) throw error;
    return (error.details.fields as { field: string }[]).map(({ field }) => field);
  }
  throw new Error('it was accepted');
}

describe('PPL-3: the body of a decision', () => {
  it.each([
    { decision: 'approve' },
    { decision: 'approve', note: 'fine', arguments: { a: { b: [1, null] } } },
    { decision: 'approve', arguments: {} },
    { decision: 'deny', note: ' no ' },
    { action: 'accept', answers: { q: 'x', r: null } },
    { action: 'decline' },
    { action: 'cancel', note: 'later' },
  ])('is taken as it is: %j', (body) => {
    expect(readDecision(body)).toEqual(body);
  });

  it.each([
    [undefined, ['decision']],
    [{}, ['decision']],
    [{ decision: undefined }, ['decision']],
    [{ decision: null }, ['decision']],
    [{ decision: 'Approve' }, ['decision']],
    [{ decision: 'approve ' }, ['decision']],
    [{ decision: 'approve\0' }, ['decision']],
    [{ decision: 'аpprove' }, ['decision']],
    [{ decision: new String('approve') }, ['decision']],
    [{ decision: ['approve'] }, ['decision']],
    [{ decision: { toString: () => 'approve' } }, ['decision']],
    [{ decision: true }, ['decision']],
    [{ decision: 'accept' }, ['decision']],
    [{ action: 'approve' }, ['action']],
    [{ decision: 'approve', action: 'accept', answers: {} }, ['decision']],
    [{ decision: 'approve', by: 'root' }, ['by']],
    [{ decision: 'approve', by: 'root' }, ['by']],
    [{ decision: 'approve', arguments: null }, ['arguments']],
    [{ decision: 'approve', arguments: [] }, ['arguments']],
    [{ decision: 'approve', arguments: '{}' }, ['arguments']],
    [{ decision: 'deny', arguments: {} }, ['arguments']],
    [{ decision: 'approve', answers: {} }, ['answers']],
    [{ decision: 'approve', note: ' ' }, ['note']],
    [{ decision: 'approve', note: 'x'.repeat(4001) }, ['note']],
    [{ action: 'accept' }, ['answers']],
    [{ action: 'accept', answers: ['x'] }, ['answers']],
    [{ action: 'accept', answers: {}, arguments: {} }, ['arguments']],
    [{ action: 'decline', answers: {} }, ['answers']],
    [Object.create({ decision: 'approve' }), ['(body)']],
    ['approve', ['(body)']],
    [['approve'], ['(body)']],
    [null, ['(body)']],
    [true, ['(body)']],
  ])('is not %j', (body, fields) => {
    expect(fieldsOf(() => readDecision(body))).toEqual(fields);
  });

  it('B110: a prototype decides nothing', () => {
    expect(fieldsOf(() => readDecision(JSON.parse('{"__proto__":{"decision":"approve"}}')))).toEqual([
      'decision',
      '__proto__',
    ]);
  });

  it('B070: a note of exactly the limit is kept whole, emoji included', () => {
    const note = `${'x'.repeat(3998)}😀`;
    expect(readDecision({ decision: 'deny', note })).toEqual({ decision: 'deny', note });
    expect(fieldsOf(() => readDecision({ decision: 'deny', note: `${note}x` }))).toEqual(['note']);
  });
});

describe('The query of a list of asks', () => {
  it('becomes a filter', () => {
    const texts = { status: 'used', sessionId: 's', agent: 'a', runId: 'r', approverRole: 'finance lead', after: 'c' };
    expect(readInteractionList({ ...texts, limit: '100' })).toEqual({ ...texts, status: ['used'], limit: 100 });
    const more = { actor: 'alice', createdBefore: '2026-03-01', 'metadata.tenant': 'a' };
    expect(readInteractionList({ ...more, status: ['pending', 'approved,used'] })).toEqual({
      actor: 'alice',
      createdBefore: new Date('2026-03-01T00:00:00Z'),
      metadata: { tenant: 'a' },
      status: ['pending', 'approved', 'used'],
    });
    expect(readInteractionList({})).toEqual({});
  });

  it('names every problem', () => {
    const query = {
      sessionId: 'a b',
      agent: '',
      actor: ['a', 'b'],
      createdSince: ['2026-03-01', '2026-03-02'],
      createdBefore: 'yesterday',
      after: '',
      limit: '0',
      status: ['pending', ['used']],
      runId: {},
      approverRole: ' ',
      x: '',
    };
    expect(fieldsOf(() => readInteractionList(query))).toEqual(Object.keys(query));
  });
});

describe('The bodies of other verbs', () => {
  it('STR-1: of a message', () => {
    expect(readSteer({ message: ' x ', requestId: 'm.1' })).toEqual({ message: ' x ', requestId: 'm.1' });
    expect(fieldsOf(() => readSteer({}))).toEqual(['message']);
    expect(fieldsOf(() => readSteer({ message: '\n', requestId: '', sender: 'root' }))).toEqual([
      'message',
      'requestId',
      'sender',
    ]);
    expect(fieldsOf(() => readSteer({ message: [{ type: 'text', text: 'x' }] }))).toEqual(['message']);
  });

  it('RUN-5: of a restart', () => {
    expect(readRestart(undefined)).toEqual({});
    expect(readRestart({ prompt: 'x', reason: 'y' })).toEqual({ prompt: 'x', reason: 'y' });
    expect(fieldsOf(() => readRestart({ prompt: '', reason: 1, messages: [] }))).toEqual([
      'reason',
      'prompt',
      'messages',
    ]);
  });

  it('BUD-2: of a budget decision', () => {
    expect(readBudgetDecision({ decision: 'grant' })).toEqual({ decision: 'grant' });
    expect(readBudgetDecision({ decision: 'grant', amount: 5, note: 'n' })).toEqual({
      decision: 'grant',
      amount: 5,
      note: 'n',
    });
    expect(readBudgetDecision({ decision: 'deny', note: 'n' })).toEqual({ decision: 'deny', note: 'n' });
    for (const decision of ['GRANT', 'approve', true, null, ['grant'], 'grant\n']) {
      expect([decision, fieldsOf(() => readBudgetDecision({ decision }))]).toEqual([decision, ['decision']]);
    }
    expect(fieldsOf(() => readBudgetDecision({}))).toEqual(['decision']);
    for (const amount of [0, -1, 1.5, '5', null, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect([amount, fieldsOf(() => readBudgetDecision({ decision: 'grant', amount }))]).toEqual([amount, ['amount']]);
    }
    expect(fieldsOf(() => readBudgetDecision({ decision: 'deny', amount: 5 }))).toEqual(['amount']);
  });
});
