/** Whose a session is, decided with the create of its first run: of two owners that want the same new session, one gets it and the other reads nothing. */
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import type { StartOptions } from '../../lib/contracts/run-requests.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { upTo } from '../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines } from '../support/engine-harness.js';
import { ALL_ENGINE_STORES, type SharedStore } from '../support/stores.js';

const start = { agent: 'support', prompt: 'my secret', sessionId: 's-1' };
const talkative = () => agent(scriptedModel(upTo(100).map(() => ({ text: 'noted' }))));

afterEach(stopEngines);

describe.each(ALL_ENGINE_STORES)('on $name', ({ open }) => {
  let opened: SharedStore;
  beforeEach(async () => {
    opened = await open();
  });
  afterEach(async () => {
    await stopEngines();
    await opened.dispose();
  });

  it('SUB-4: of two owners that open one session at once, one has it and the other is in no part of it', async () => {
    const engines = [
      await engineOver(opened.store, talkative()),
      await engineOver(await opened.second(), talkative()),
    ] as const;
    for (const round of upTo(8)) {
      const sessionId = `s-${round}`;
      const owners = round % 2 === 0 ? ['acme', 'evil'] : ['evil', 'acme'];
      const started = await Promise.allSettled(
        engines.map(({ runs }, n) =>
          runs.startAndWait({
            ...start,
            sessionId,
            enqueue: true,
            prompt: `secret of ${owners[n]}`,
            sessionOwner: owners[n],
          }),
        ),
      );
      const refused = started.flatMap((one) =>
        one.status === 'rejected' ? [(one.reason as AgentRunsError).code] : [],
      );
      expect(refused).toEqual(['FORBIDDEN']);
      const winner = owners[started.findIndex(({ status }) => status === 'fulfilled')] as string;
      expect((await opened.store.session(sessionId))?.owner).toBe(winner);
      const messages = JSON.stringify(await engines[0].runs.sessionMessages(sessionId, { sessionOwner: winner }));
      expect(messages).toContain(`secret of ${winner}`);
      const loser = owners.find((owner) => owner !== winner) as string;
      expect(messages).not.toContain(`secret of ${loser}`);
      await expect(engines[1].runs.sessionMessages(sessionId, { sessionOwner: loser })).rejects.toMatchObject({
        code: 'FORBIDDEN',
      });
      expect((await opened.store.list({ sessionId, limit: 10 })).items).toHaveLength(1);
    }
  });
});

describe('The owner of a session', () => {
  const setUp = async () => {
    const store = new MemoryRunStore();
    const { runs } = await engineOver(store, talkative());
    const theirs = await runs.startAndWait({
      ...start,
      sessionOwner: 'acme',
      requestId: 'q',
      runId: 'run-1',
      actor: { id: 'alice' },
    });
    return { store, runs, theirs };
  };
  const codeOf = async (promise: Promise<unknown>) => {
    const error = await promise.then(
      () => null,
      (thrown: AgentRunsError) => thrown,
    );
    return error && [error.code, JSON.stringify([error.message, error.details])];
  };

  it.each<[string, Partial<StartOptions>]>([
    ['a start', {}],
    ['a start that gets in line', { enqueue: true }],
    ['a repeated request', { requestId: 'q' }],
    ['a request of the same id with other input', { requestId: 'q', prompt: 'other' }],
    ['a taken run id', { runId: 'run-1' }],
    ['resuming a run by its id', { runId: 'run-1', ifExists: 'resume' }],
    ['restarting a run by its id', { runId: 'run-1', ifExists: 'restart' }],
  ])('refuses another one: %s', async (_what, options) => {
    const { store, runs, theirs } = await setUp();
    const before = await store.load(theirs.id);
    for (const verb of ['start', 'startAndWait'] as const) {
      const [code, told] = (await codeOf(runs[verb]({ ...start, sessionOwner: 'evil', ...options }))) ?? [];
      expect(code).toBe('FORBIDDEN');
      for (const secret of ['acme', 'run-1', 'completed', 'alice']) expect(told).not.toContain(secret);
    }
    expect(await store.load(theirs.id)).toEqual(before);
    expect((await store.list({ limit: 10 })).items).toHaveLength(1);
  });

  it('lets the owner in, and whoever names none', async () => {
    const { runs, theirs } = await setUp();
    const again = { ...start, requestId: 'q', sessionOwner: 'acme' };
    expect(await runs.start(again)).toMatchObject({ id: theirs.id, deduplicated: true });
    expect((await runs.startAndWait({ ...start, sessionOwner: 'acme' })).status).toBe('completed');
    expect((await runs.startAndWait(start)).status).toBe('completed');
    expect(await runs.sessionMessages('s-1')).toHaveLength(6);
    expect(await runs.sessionMessages('s-1', { sessionOwner: 'acme' })).toHaveLength(6);
    expect(await runs.sessionMessages('never', { sessionOwner: 'evil' })).toEqual([]);
  });

  it('is nobody where the first run named none, so that no later start can claim it', async () => {
    const { runs } = await engineOver(new MemoryRunStore(), talkative());
    await runs.startAndWait(start);
    expect((await codeOf(runs.start({ ...start, sessionOwner: 'evil' })))?.[0]).toBe('FORBIDDEN');
  });

  it.each([null, '', 0, {}])('is text that is not empty; %j does not pass for none', async (sessionOwner) => {
    const { runs } = await setUp();
    const wrong = { ...start, sessionOwner } as unknown as StartOptions;
    expect((await codeOf(runs.start(wrong)))?.[0]).toBe('INVALID_REQUEST');
    expect((await codeOf(runs.sessionMessages('s-1', { sessionOwner } as never)))?.[0]).toBe('INVALID_REQUEST');
  });

  it('does not open other sessions: a run of another one is not taken up by its id', async () => {
    const { store, runs, theirs } = await setUp();
    const before = await store.load(theirs.id);
    for (const ifExists of ['reject', 'resume', 'restart'] as const) {
      const mine = { ...start, sessionId: 'mine', sessionOwner: 'evil', runId: theirs.id, ifExists };
      const [code, told] = (await codeOf(runs.start(mine))) ?? [];
      expect(code).toBe('RUN_EXISTS');
      expect(told).not.toContain('completed');
    }
    expect(await store.load(theirs.id)).toEqual(before);
  });

  it('SUB-2: outside of sessions an actor is not handed the run of another one by a request or run id', async () => {
    const { runs } = await engineOver(new MemoryRunStore(), talkative());
    const request = { agent: 'support', prompt: 'my secret', requestId: 'q', runId: 'mine' };
    const mine = await runs.startAndWait({ ...request, actor: { id: 'alice' } });
    for (const prompt of ['my secret', 'other']) {
      const [code, told] = (await codeOf(runs.start({ ...request, prompt, actor: { id: 'mallory' } }))) ?? [];
      expect(code).toBe('REQUEST_CONFLICT');
      expect(told).not.toContain('mine');
    }
    const byId = {
      agent: 'support',
      prompt: 'x',
      runId: 'mine',
      ifExists: 'restart',
      actor: { id: 'mallory' },
    } as const;
    expect((await codeOf(runs.start(byId)))?.[0]).toBe('RUN_EXISTS');
    expect(await runs.start({ ...request, actor: { id: 'alice' } })).toMatchObject({ id: mine.id, deduplicated: true });
    expect(await runs.start(request)).toMatchObject({ id: mine.id, deduplicated: true });
  });
});
