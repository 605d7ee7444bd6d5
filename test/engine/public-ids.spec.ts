import { afterEach, describe, expect, it } from '@jest/globals';
import type { RunService } from '../../lib/engine/run-service.js';
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { anInteraction, ask, submit } from '../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { journalOf } from '../support/journal-of.js';

afterEach(stopEngines);

/** B115: what arrives where an id belongs, when a caller forgot to look. */
const NO_IDS: [what: string, value: unknown][] = [
  ['undefined', undefined],
  ['null', null],
  ['an empty text', ''],
  ['a blank', ' '],
  ['NaN', Number.NaN],
  ['zero', 0],
  ['true', true],
  ['an object', {}],
  ['a list', []],
  ['a list with an id in it', ['r']],
  ['an object that looks like one', { toString: () => 'r' }],
  ['a quote', "r' OR '1'='1"],
  ['a wildcard', '%'],
  ['a path', '../r'],
  ['a line break', 'r\n'],
  ['129 characters', 'x'.repeat(129)],
  ['a symbol', Symbol('r')],
];

const by = 'ann';
type Call = (runs: RunService, id: never) => Promise<unknown>;

/** Every public method that takes an id, with everything else as it should be. */
const METHODS: Record<string, Call> = {
  get: (runs, id) => runs.get(id),
  snapshot: (runs, id) => runs.snapshot(id),
  messages: (runs, id) => runs.messages(id),
  sessionMessages: (runs, id) => runs.sessionMessages(id),
  result: (runs, id) => runs.result(id, { timeout: 5 }),
  events: (runs, id) => runs.events(id),
  resume: (runs, id) => runs.resume(id),
  retry: (runs, id) => runs.retry(id),
  cancel: (runs, id) => runs.cancel(id, { by }),
  resolveTool: (runs, id) => runs.resolveTool(id, { key: 'r1.m1.t0', output: 1, by }),
  'respond (run)': (runs, id) => runs.respond(id, 'i', { decision: 'approve', by }),
  'respond (interaction)': (runs, id) => runs.respond('r', id, { decision: 'approve', by }),
  steer: (runs, id) => runs.steer(id, 'go left', { sender: by }),
  interrupt: (runs, id) => runs.interrupt(id, { by }),
  restart: (runs, id) => runs.restart(id),
  grantBudget: (runs, id) => runs.grantBudget(id, 100, { by }),
  denyBudget: (runs, id) => runs.denyBudget(id, { by }),
  budgetStatus: (runs, id) => runs.budgetStatus(id),
};

/** Ids that may be left out: undefined is no id there, everything else is a wrong one. */
const OPTIONAL: Record<string, Call> = {
  'start (runId)': (runs, id) => runs.start({ agent: 'support', prompt: 'x', runId: id }),
  'start (sessionId)': (runs, id) => runs.start({ agent: 'support', prompt: 'x', sessionId: id }),
  'start (requestId)': (runs, id) => runs.start({ agent: 'support', prompt: 'x', requestId: id }),
  'steer (requestId)': (runs, id) => runs.steer('r', 'go left', { sender: by, requestId: id }),
  'list (sessionId)': (runs, id) => runs.list({ sessionId: id }),
  'list (agent)': (runs, id) => runs.list({ agent: id }),
  'list (actor)': (runs, id) => runs.list({ actor: id }),
  'list (after)': (runs, id) => runs.list({ after: id }),
  'list (metadata key)': (runs, id) => runs.list({ metadata: { [typeof id === 'symbol' ? 'a b' : String(id)]: 'x' } }),
  'list (metadata value)': (runs, id) => runs.list({ metadata: { tenant: id } }),
  'list (metadata)': (runs, id) => runs.list({ metadata: id }),
  'list (status)': (runs, id) => runs.list({ status: id }),
  'list (phase)': (runs, id) => runs.list({ phase: id }),
  'pendingInteractions (runId)': (runs, id) => runs.pendingInteractions({ runId: id }),
  'pendingInteractions (sessionId)': (runs, id) => runs.pendingInteractions({ sessionId: id }),
  'pendingInteractions (agent)': (runs, id) => runs.pendingInteractions({ agent: id }),
  'pendingInteractions (approverRole)': (runs, id) => runs.pendingInteractions({ approverRole: id }),
  'list (createdSince)': (runs, id) => runs.list({ createdSince: id }),
  'list (createdBefore)': (runs, id) => runs.list({ createdBefore: id }),
  'pendingInteractions (actor)': (runs, id) => runs.pendingInteractions({ actor: id }),
  'pendingInteractions (status)': (runs, id) => runs.pendingInteractions({ status: id }),
  'pendingInteractions (createdSince)': (runs, id) => runs.pendingInteractions({ createdSince: id }),
  'pendingInteractions (createdBefore)': (runs, id) => runs.pendingInteractions({ createdBefore: id }),
  'pendingInteractions (after)': (runs, id) => runs.pendingInteractions({ after: id }),
};

async function world() {
  const store = new FailingStore(new MemoryRunStore());
  await submit(store, {
    id: 'r',
    status: 'waiting',
    waitingFor: ['approval'],
    sessionId: 's',
    sessionMode: 'serial',
  }).catch(() => undefined);
  await ask(store, [anInteraction({ id: 'i', runId: 'r' })], 'r');
  const engine = await engineOver(store, agent(scriptedModel([])), { worker: false });
  const before = JSON.stringify([await store.load('r'), await journalOf(store, 'r')]);
  return { store, engine, before };
}

/** What came of it: the code of the refusal, or what was answered. */
async function outcome(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    return AgentRunsError.is(error) ? error.code : error;
  }
}

const REFUSALS = ['INVALID_REQUEST', 'INVALID_CURSOR'];

describe('ids from outside', () => {
  it.each(Object.entries(METHODS))(
    'SUB-3: %s refuses whatever is no id, and neither shows nor changes a row (B115)',
    async (_, call) => {
      const { store, engine, before } = await world();
      for (const [what, value] of NO_IDS) {
        const result = await outcome(() => call(engine.runs, value as never));
        expect([what, result]).toEqual([what, 'INVALID_REQUEST']);
      }
      expect(JSON.stringify([await store.load('r'), await journalOf(store, 'r')])).toBe(before);
      expect((await store.list({ limit: 100 })).items).toHaveLength(1);
    },
  );

  it.each(Object.entries(OPTIONAL))(
    'SUB-3: %s refuses whatever is no such value, and neither shows nor changes a row (B115, B134)',
    async (name, call) => {
      const { store, engine, before } = await world();
      for (const [what, value] of NO_IDS) {
        if (value === undefined) continue;
        const result = await outcome(() => call(engine.runs, value as never));
        // No filter at all is none; any other answer to nonsense is empty.
        if (name === 'list (metadata)' && what === 'an object') continue;
        expect([what, REFUSALS.includes(result as string) ? [] : Object.values(result as object)[0]]).toEqual([
          what,
          [],
        ]);
      }
      expect(JSON.stringify([await store.load('r'), await journalOf(store, 'r')])).toBe(before);
      expect((await store.list({ limit: 100 })).items).toHaveLength(1);
    },
  );

  it.each(Object.entries(METHODS).filter(([name]) => !['sessionMessages', 'respond (interaction)'].includes(name)))(
    '%s of a run that is not there says so',
    async (_, call) => {
      const { engine } = await world();
      expect(await outcome(() => call(engine.runs, 'nobody' as never))).toBe('RUN_NOT_FOUND');
    },
  );

  it('PPL-3: an ask of another run is not found', async () => {
    const { engine, store } = await world();
    await submit(store, { id: 'other', requestId: 'other', requestScope: 'run:other' });
    expect(await outcome(() => engine.runs.respond('other', 'i', { decision: 'approve', by }))).toBe(
      'INTERACTION_NOT_FOUND',
    );
    expect(await outcome(() => engine.runs.respond('r', 'nothing', { decision: 'approve', by }))).toBe(
      'INTERACTION_NOT_FOUND',
    );
  });

  const options: [what: string, call: (runs: RunService, options: never) => Promise<unknown>][] = [
    ['start', (runs, given) => runs.start(given)],
    ['resume', (runs, given) => runs.resume('r', given)],
    ['retry', (runs, given) => runs.retry('r', given)],
    ['cancel', (runs, given) => runs.cancel('r', given)],
    ['interrupt', (runs, given) => runs.interrupt('r', given)],
    ['restart', (runs, given) => runs.restart('r', given)],
    ['resolveTool', (runs, given) => runs.resolveTool('r', given)],
    ['respond', (runs, given) => runs.respond('r', 'i', given)],
    ['steer', (runs, given) => runs.steer('r', 'x', given)],
    ['grantBudget', (runs, given) => runs.grantBudget('r', 1, given)],
    ['denyBudget', (runs, given) => runs.denyBudget('r', given)],
    ['events', (runs, given) => runs.events('r', given)],
    ['list', (runs, given) => runs.list(given)],
    ['pendingInteractions', (runs, given) => runs.pendingInteractions(given)],
    ['result', (runs, given) => runs.result('r', given)],
  ];

  it.each(options)('SUB-3: %s refuses options that are null, text, a number or a list', async (_, call) => {
    const { store, engine, before } = await world();
    for (const given of [null, 'x', 5, ['x']])
      expect([given, await outcome(() => call(engine.runs, given as never))]).toEqual([given, 'INVALID_REQUEST']);
    expect(JSON.stringify([await store.load('r'), await journalOf(store, 'r')])).toBe(before);
  });

  it.each([-1, 0, 101, 1e9, 1.5, Number.NaN, 'abc', '10', null, {}])(
    'STO-8: a page of %p runs or asks is refused (B134)',
    async (limit) => {
      const { engine } = await world();
      expect(await outcome(() => engine.runs.list({ limit: limit as never }))).toBe('INVALID_REQUEST');
      expect(await outcome(() => engine.runs.pendingInteractions({ limit: limit as never }))).toBe('INVALID_REQUEST');
    },
  );

  it.each([
    { actr: 'alice' },
    { createdSince: '2026-03-01' },
    { createdBefore: new Date(Number.NaN) },
    { status: [['pending']] },
    { status: ['pending', 'done'] },
    { actor: { id: 'alice' } },
  ])('STO-8: a list by %j is refused: without the filter it would be longer (B134)', async (filter) => {
    const { engine } = await world();
    const field = Object.keys(filter)[0];
    for (const list of [engine.runs.list(filter as never), engine.runs.pendingInteractions(filter as never)])
      await expect(list).rejects.toMatchObject({ code: 'INVALID_REQUEST', details: { fields: [{ field }] } });
  });

  it('STO-8: lists take several statuses', async () => {
    const { engine } = await world();
    const { status: its } = await engine.runs.get('r');
    expect((await engine.runs.list({ status: ['failed', its] })).runs).toHaveLength(1);
    expect((await engine.runs.list({ status: ['failed', its], phase: 'settled' })).runs).toEqual([]);
    expect((await engine.runs.list({ status: ['failed', 'completed'] })).runs).toEqual([]);
    const asked = async (status: ('pending' | 'used')[]) =>
      (await engine.runs.pendingInteractions({ status, actor: 'alice' })).interactions.length;
    expect([await asked(['used']), await asked(['used', 'pending']), await asked([])]).toEqual([0, 1, 0]);
  });

  it.each([-1, 0, Number.NaN, Number.POSITIVE_INFINITY, '30x', '', {}, null])(
    'SUB-3: result refuses the timeout %p',
    async (timeout) => {
      const { engine } = await world();
      expect(await outcome(() => engine.runs.result('r', { timeout: timeout as never }))).toBe('INVALID_REQUEST');
    },
  );
});
