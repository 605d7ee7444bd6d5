import { AgentRunsError } from '../../../lib/errors/agent-runs.error.js';
import { requireId } from '../../../lib/contracts/schema.js';
import {
  EVENT_QUERY,
  LIST_QUERY,
  readBody,
  readQuery,
  readStartBody,
  REASON_BODY,
  RESOLUTION_BODY,
  RESUME_BODY,
  WAIT_QUERY,
} from '../../../lib/http/requests/http-schemas.js';

const readStart = (body: unknown) => readStartBody(body, 128);
const readResume = (body: unknown) => readBody(RESUME_BODY, body);
const readReason = (body: unknown) => readBody(REASON_BODY, body);
const readResolution = (body: unknown) => readBody(RESOLUTION_BODY, body);
const readList = (query: unknown) => readQuery(LIST_QUERY, query);
const readEventQuery = (query: unknown) => readQuery(EVENT_QUERY, query);
const readWait = (query: unknown) => readQuery(WAIT_QUERY, query).wait;
const readPathId = requireId;

interface Problem {
  field: string;
  problem: string;
}

/** The problems found, field by field. */
function problemsOf(read: () => unknown): Problem[] {
  try {
    read();
  } catch (error) {
    if (!AgentRunsError.is(error, 'INVALID_REQUEST')) throw error;
    return error.details.fields as Problem[];
  }
  throw new Error('it was accepted');
}

const fieldsOf = (read: () => unknown) => problemsOf(read).map(({ field }) => field);

describe('The body of a start', () => {
  it('is taken field by field', () => {
    const body = {
      agent: 'support',
      version: '1.10',
      prompt: 'hello',
      sessionId: 's:1',
      requestId: 'r-1',
      runId: 'run.1',
      enqueue: true,
      budget: { maxTotalTokens: 10 },
      metadata: { tenant: 'a', vip: false, level: 3 },
    };
    expect(readStart(body)).toEqual(body);
    expect(readStart({ agent: 'support', messages: [{ role: 'user', content: 'x' }] })).toEqual({
      agent: 'support',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
    });
  });

  it('SUB-3: every failing field is named at once, unknown ones included', () => {
    const body = {
      agent: 7,
      version: 2,
      prompt: ' \n',
      sessionId: 'a b',
      requestId: '',
      runId: 'x'.repeat(129),
      enqueue: 'true',
      budget: { maxTotalTokens: '10', more: 1 },
      metadata: { 'a b': 1, deep: {}, long: 'x'.repeat(192), nothing: null },
      actor: { id: 'root' },
    };
    expect(fieldsOf(() => readStart(body)).sort()).toEqual(
      [
        'agent',
        'version',
        'prompt',
        'sessionId',
        'requestId',
        'runId',
        'enqueue',
        'budget.maxTotalTokens',
        'budget.more',
        'metadata.a b',
        'metadata.deep',
        'metadata.long',
        'metadata.nothing',
        'actor',
      ].sort(),
    );
  });

  it('needs exactly one of prompt and messages', () => {
    expect(fieldsOf(() => readStart({ agent: 'a' }))).toEqual(['prompt']);
    expect(fieldsOf(() => readStart({ agent: 'a', prompt: 'x', messages: [{ role: 'user', content: 'x' }] }))).toEqual([
      'prompt',
    ]);
    expect(fieldsOf(() => readStart({ agent: 'a', messages: [] }))).toEqual(['messages']);
    expect(fieldsOf(() => readStart({ agent: 'a', messages: [null, 'x', { role: 'root', content: 1 }] }))).toEqual([
      'messages[0].role',
      'messages[0].content',
      'messages[1].role',
      'messages[1].content',
      'messages[2].role',
      'messages[2].content',
    ]);
  });

  it.each([[[]], ['text'], [1], [true], [new Date(0)]])('B115: is an object, not %p', (body) => {
    expect(fieldsOf(() => readStart(body))).toEqual(['(body)']);
  });

  it('B115: nothing, null and NaN are no values', () => {
    for (const nothing of [null, Number.NaN, '', {}, []]) {
      expect([nothing, fieldsOf(() => readStart({ agent: nothing, prompt: 'x' }))]).toEqual([nothing, ['agent']]);
      expect([nothing, fieldsOf(() => readStart({ agent: 'a', prompt: 'x', sessionId: nothing }))]).toEqual([
        nothing,
        ['sessionId'],
      ]);
    }
    expect(fieldsOf(() => readStart(undefined))).toEqual(['prompt', 'agent']);
  });

  it.each([
    '{"agent":"a","prompt":"x","__proto__":{"version":"9"}}',
    '{"agent":"a","prompt":"x","metadata":{"__proto__":{"isAdmin":true}}}',
    '{"agent":"a","prompt":"x","metadata":{"__proto__":"x"}}',
    '{"agent":"a","prompt":"x","constructor":{"prototype":{"isAdmin":true}}}',
  ])('B110: %s is refused and changes no prototype', (text) => {
    expect(fieldsOf(() => readStart(JSON.parse(text)))).toHaveLength(1);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('B110: fields of a prototype are no fields', () => {
    class Body {
      get prompt() {
        return 'x';
      }
    }
    expect(fieldsOf(() => readStart(Object.assign(new Body(), { agent: 'a' })))).toEqual(['(body)']);
    expect(fieldsOf(() => readStart(Object.assign(Object.create({ prompt: 'x' }), { agent: 'a' })))).toContain(
      '(body)',
    );
  });

  it('names of fields are cut, and their number is bounded', () => {
    const [problem] = problemsOf(() => readStart({ agent: 'a', prompt: 'x', ['😀'.repeat(100_000)]: 1 }));
    expect(problem?.field).toBe(`${'😀'.repeat(100)}…`);
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, 1]));
    expect(problemsOf(() => readStart({ agent: 'a', prompt: 'x', ...many }))).toHaveLength(50);
  });
});

describe('The body of a resume', () => {
  it('is optional', () => {
    expect(readResume(undefined)).toEqual({});
    expect(readResume({ budget: { maxTotalTokens: 5 }, allowRunningTakeover: false })).toEqual({
      budget: { maxTotalTokens: 5 },
      allowRunningTakeover: false,
    });
  });

  it.each(['false', 'true', 'no', 'true ', 0, 1, null, [], [true], { x: 1 }, 'TRUE', 'true\0'])(
    'OWN-4: %p is no permission to take a run over',
    (value) => {
      expect(fieldsOf(() => readResume({ allowRunningTakeover: value, reason: 'gone' }))).toEqual([
        'allowRunningTakeover',
      ]);
    },
  );

  it('OWN-4: a takeover needs a reason, and nobody names themselves', () => {
    expect(fieldsOf(() => readResume({ allowRunningTakeover: true }))).toEqual(['reason']);
    expect(readResume({ allowRunningTakeover: true, reason: 'gone' }).reason).toBe('gone');
    expect(readResume({ allowRunningTakeover: true, confirmation: { reason: 'gone' } })).toEqual({
      allowRunningTakeover: true,
      confirmation: { reason: 'gone' },
    });
    expect(
      fieldsOf(() => readResume({ allowRunningTakeover: true, confirmation: { by: 'root', reason: 'gone' } })),
    ).toEqual(['confirmation.by']);
    expect(fieldsOf(() => readResume({ by: 'root' }))).toEqual(['by']);
  });
});

describe('The body of a resolution', () => {
  it('JRN-10: holds exactly one of output, error and notHappened', () => {
    expect(readResolution({ key: 'k', output: null })).toEqual({ key: 'k', output: null });
    expect(readResolution({ key: 'k', error: { message: 'no' }, note: 'n' })).toEqual({
      key: 'k',
      note: 'n',
      error: { message: 'no' },
    });
    expect(readResolution({ key: 'k', notHappened: true })).toEqual({ key: 'k', notHappened: true });
    expect(fieldsOf(() => readResolution({ key: 'k' }))).toEqual(['output']);
    expect(fieldsOf(() => readResolution({ key: 'k', output: 1, notHappened: true }))).toEqual(['output']);
    expect(fieldsOf(() => readResolution({ key: 'k', notHappened: 'true' }))).toEqual(['notHappened']);
    expect(fieldsOf(() => readResolution({ key: 'k', notHappened: false }))).toEqual(['notHappened']);
    expect(fieldsOf(() => readResolution({ key: 'k', error: 'no' }))).toEqual(['error']);
    expect(fieldsOf(() => readResolution({ output: 1, by: 'root' }))).toEqual(['key', 'by']);
  });
});

describe('Other bodies', () => {
  it('hold a reason or nothing', () => {
    expect(readReason(undefined)).toEqual({});
    expect(readReason({ reason: 'late' })).toEqual({ reason: 'late' });
    expect(fieldsOf(() => readReason({ reason: ' ' }))).toEqual(['reason']);
    expect(fieldsOf(() => readReason([]))).toEqual(['(body)']);
  });
});

describe('Queries', () => {
  it('of a list become a filter', () => {
    expect(
      readList({
        sessionId: 's',
        agent: 'a',
        actor: 'ada@example.org',
        status: 'running',
        phase: 'active',
        createdSince: '2026-03-01T09:30:00.5+02:00',
        after: 'c',
        limit: '100',
        'metadata.a.b': '5',
      }),
    ).toEqual({
      sessionId: 's',
      agent: 'a',
      actor: 'ada@example.org',
      status: ['running'],
      phase: 'active',
      createdSince: new Date('2026-03-01T07:30:00.500Z'),
      after: 'c',
      limit: 100,
      metadata: { 'a.b': '5' },
    });
    expect(readList(Object.create(null))).toEqual({});
  });

  it.each<[string | string[], string[]]>([
    ['failed', ['failed']],
    ['failed,completed', ['failed', 'completed']],
    [
      ['failed', 'completed'],
      ['failed', 'completed'],
    ],
    [
      ['failed,blocked', 'failed'],
      ['failed', 'blocked'],
    ],
  ])('of a list take several statuses: %j', (status, read) => {
    expect(readList({ status })).toEqual({ status: read });
  });

  it.each(['', ',', 'failed,', 'failed, completed', 'FAILED', [], [['failed']], ['failed', 7], { 0: 'failed' }, 'all'])(
    'B134: status=%j is refused',
    (status) => {
      expect(fieldsOf(() => readList({ status }))).toEqual(['status']);
    },
  );

  it.each([
    ['2026-02-28', '2026-02-28T00:00:00.000Z'],
    ['2026-02-28T23:59:59Z', '2026-02-28T23:59:59.000Z'],
    ['2026-02-28t23:59:59.123456z', '2026-02-28T23:59:59.123Z'],
    ['2026-02-28T23:59:59-01:00', '2026-03-01T00:59:59.000Z'],
  ])('of a list take %s as a moment', (text, moment) => {
    expect(readList({ createdSince: text, createdBefore: text })).toEqual({
      createdSince: new Date(moment),
      createdBefore: new Date(moment),
    });
  });

  it.each([
    '',
    'now',
    '1760000000000',
    '2026-02-30',
    '2026-2-3',
    '2026-02-28T10:00:00',
    '2026-02-28T10:00Z',
    '2026-02-28T24:00:00Z',
    '2026-02-28T10:00:00 02:00',
    "2026-02-28'--",
    ['2026-02-28'],
    null,
    7,
  ])('B134: createdSince=%j is no moment', (createdSince) => {
    expect(fieldsOf(() => readList({ createdSince }))).toEqual(['createdSince']);
  });

  it.each(['-1', '0', '101', '1e9', 'abc', '1.5', ' 5', '5 ', '0x5', '٣', '', ['5', '6'], { a: '5' }])(
    'B134: limit=%p is refused',
    (limit) => {
      expect(fieldsOf(() => readList({ limit }))).toEqual(['limit']);
    },
  );

  it.each(["a') OR 1=1 --", 'a"b', 'a[0]', '$', '%', '*', '', 'x'.repeat(200_000), '__proto__'])(
    'B134: metadata.%.20p is no key',
    (key) => {
      expect(fieldsOf(() => readList(JSON.parse(`{${JSON.stringify(`metadata.${key}`)}:"x"}`)))).toHaveLength(1);
    },
  );

  it('B134: sorting and other unknown parameters are named', () => {
    expect(fieldsOf(() => readList({ sort: 'createdAt;DROP TABLE', status: 'RUNNING', metadata: { a: '1' } }))).toEqual(
      ['status', 'sort', 'metadata'],
    );
  });

  it('of events are digits', () => {
    expect(readEventQuery({ after: '7', limit: '500', projection: 'lifecycle' })).toEqual({
      after: 7,
      limit: 500,
      projection: 'lifecycle',
    });
    expect(fieldsOf(() => readEventQuery({ after: '-1', limit: '501', projection: 'all' }))).toEqual([
      'after',
      'limit',
      'projection',
    ]);
    expect(fieldsOf(() => readEventQuery({ after: '99999999999999999999' }))).toEqual(['after']);
  });

  it('of a start hold a wait of at most a minute', () => {
    expect(readWait({})).toBeUndefined();
    expect(readWait({ wait: '60' })).toBe(60);
    expect(fieldsOf(() => readWait({ wait: '61', x: '1' }))).toEqual(['wait', 'x']);
  });
});

describe('Ids of paths', () => {
  it('B115: fit the pattern', () => {
    expect(readPathId('id', 'a.B:1-_')).toBe('a.B:1-_');
    for (const id of ['', 'a b', 'ü', "a'--", 'x'.repeat(129), undefined, null, {}, ['a'], 7]) {
      expect([id, fieldsOf(() => readPathId('id', id))]).toEqual([id, ['id']]);
    }
  });
});
