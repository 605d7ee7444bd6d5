/** What a store takes in one commit is a fact of the store; what was let in one by one is committed in as many commits as it takes. */
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import type { AppendRequest, TransitionRequest, TransitionResult } from '../../lib/contracts/ports/run-store.port.js';
import { maxPayloadIn } from '../../lib/engine/engine-ports.js';
import { jsonBytes } from '../../lib/engine/values/json-domain.js';
import { PayloadTooLargeError } from '../../lib/errors/request.errors.js';
import { scriptedModel, type ScriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { ScriptedCall } from '../../lib/model/scripted/script-step.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type TestEngine } from '../support/engine-harness.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

const LIMIT = 20_000;
const PAYLOAD = maxPayloadIn(LIMIT);

/** Refuses larger commits, as MariaDB does. */
class SmallStore extends MemoryRunStore {
  override readonly traits = { ...new MemoryRunStore().traits, maxCommitBytes: LIMIT };
  readonly sizes: number[] = [];

  override append(request: AppendRequest): Promise<void> {
    this.take(request.entries);
    return super.append(request);
  }

  override transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    return super.transition({
      ...request,
      decide: (locked) => {
        const decision = request.decide(locked);
        this.take(decision.run?.entries ?? []);
        return decision;
      },
    });
  }

  private take(entries: readonly JournalEntry[]): void {
    const bytes = jsonBytes(entries);
    if (bytes > LIMIT) throw new PayloadTooLargeError(`${bytes} bytes`);
    this.sizes.push(bytes);
  }
}

describe('a store that takes little at once', () => {
  let store: SmallStore;
  let engine: TestEngine;
  const release = signal();
  const work = tool('work', async () => {
    await release.promise;
    return 'r'.repeat(PAYLOAD - 100);
  });
  const pay = tool('pay', (input) => input, { recovery: 'idempotent', asks: () => ({}) });
  const begin = async (calls: ScriptedCall[]): Promise<ScriptedModel> => {
    const model = scriptedModel([{ calls }, { text: 'done' }], { place: 'transcript' });
    store = new SmallStore();
    await store.open();
    engine = await engineOver(store, agent(model, [work, pay]), { maxPayloadBytes: PAYLOAD });
    await engine.runs.start({ agent: 'support', prompt: 'go', runId: 'run-1' });
    return model;
  };
  const reaches = (status: string): Promise<unknown> =>
    until(async () => (await store.load('run-1'))?.run.status === status, status);
  const entries = async (type: string): Promise<JournalEntry[]> =>
    ((await store.readJournal('run-1', 0, 1_000))?.entries ?? []).filter((entry) => entry.type === type);

  afterEach(() => stopEngines());

  it('STR-1: delivers messages that are too large together in several commits, in order, each once, before the next request', async () => {
    const model = await begin([{ name: 'work' }]);
    await until(() => model.requests.length === 1, 'the first request');
    const texts = Array.from({ length: 30 }, (_, n) => `${n} ${'x'.repeat(n % 3 === 0 ? 6_000 : 900)}`);
    for (const [n, text] of texts.entries())
      await engine.runs.steer('run-1', text, { sender: 'ann', requestId: `m-${n}` });
    release.resolve();
    await reaches('completed');
    const steered = (await entries('run.steered')) as { requestId: string }[];
    expect(steered.map(({ requestId }) => requestId)).toEqual(texts.map((_, n) => `m-${n}`));
    const last = model.requests.at(-1)?.messages.filter((message) => message.role === 'user') ?? [];
    expect(model.requests).toHaveLength(2);
    expect(last).toHaveLength(31);
    expect(Math.max(...store.sizes)).toBeGreaterThan(LIMIT / 2);
  });

  it('PPL-3: takes up decisions that are too large together in several commits, each once', async () => {
    const held = signal();
    const hold = tool('hold', () => held.promise);
    const calls = [{ name: 'hold' }, ...Array.from({ length: 12 }, (_, n) => ({ name: 'pay', args: { n } }))];
    const model = scriptedModel([{ calls }, { text: 'done' }], { place: 'transcript' });
    store = new SmallStore();
    await store.open();
    engine = await engineOver(store, agent(model, [hold, pay]), { maxPayloadBytes: PAYLOAD });
    await engine.runs.start({ agent: 'support', prompt: 'go', runId: 'run-1' });
    const asks = async () => (await store.interactions({ runId: 'run-1', limit: 100 })).items;
    await until(async () => (await asks()).length === 12, 'all asks');
    for (const [n, { id }] of (await asks()).entries())
      await engine.runs.respond('run-1', id, {
        decision: 'approve',
        by: 'ann',
        arguments: { n, memo: 'm'.repeat(5_000) },
      });
    held.resolve();
    await reaches('completed');
    expect(await entries('interaction.answered')).toHaveLength(12);
    expect(await entries('tool.completed')).toHaveLength(13);
  });

  it('OPS-3: refuses on entry what no commit takes, and says how large it is', async () => {
    await begin([{ name: 'pay', args: { n: 1 } }]);
    await reaches('waiting');
    const [asked] = (await store.interactions({ runId: 'run-1', limit: 1 })).items;
    const large = 'x'.repeat(PAYLOAD);
    const { runs } = engine;
    const refused = [
      () => runs.start({ agent: 'support', prompt: large }),
      () => runs.steer('run-1', large, { sender: 'ann' }),
      () => runs.steer('run-1', '\u0001'.repeat(PAYLOAD / 3) + 'x', { sender: 'ann' }),
      () =>
        runs.respond('run-1', asked?.id ?? '', { decision: 'approve', by: 'ann', arguments: { n: 1, memo: large } }),
      () => runs.restart('run-1', { prompt: large }),
      () => runs.resolveTool('run-1', { key: 'r1.m1.t0', by: 'ann', output: large }),
    ];
    const tooLong = [
      () => runs.start({ agent: 'support', prompt: 'go', actor: { id: large } }),
      () => runs.steer('run-1', 'hello', { sender: large }),
      () => runs.respond('run-1', asked?.id ?? '', { decision: 'deny', by: 'ann', note: large }),
      () => runs.resolveTool('run-1', { key: 'r1.m1.t0', by: 'ann', error: { message: large } }),
    ];
    for (const attempt of tooLong)
      await expect(attempt()).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('at most 4000 characters'),
      });
    for (const [index, attempt] of refused.entries()) {
      const error = await attempt().then(
        () => 'accepted',
        (thrown: unknown) => thrown,
      );
      expect([index, error]).toEqual([
        index,
        expect.objectContaining({
          code: 'PAYLOAD_TOO_LARGE',
          details: expect.objectContaining({ bytes: expect.any(Number), maxPayloadBytes: PAYLOAD }),
        }),
      ]);
    }
    expect((await store.load('run-1'))?.run.status).toBe('waiting');
  });

  it('OPS-3: pages of events and interactions end where they are large, after one of them at least', async () => {
    const large = 'x'.repeat(3_000_000);
    const calls = [1, 2, 3].map((n) => ({ name: 'pay', args: { n, memo: large } }));
    const memory = new MemoryRunStore();
    await memory.open();
    const { runs } = await engineOver(memory, agent(scriptedModel([{ calls }, { text: 'done' }]), [pay]));
    await runs.start({ agent: 'support', prompt: large, runId: 'run-1' });
    await until(async () => (await memory.load('run-1'))?.run.status === 'waiting', 'the asks');
    const pages: number[] = [];
    const ids: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await runs.pendingInteractions({ runId: 'run-1', ...(after !== undefined && { after }) });
      pages.push(page.interactions.length);
      ids.push(...page.interactions.map(({ id }) => id));
      if (page.nextCursor === undefined) break;
      after = page.nextCursor;
    }
    expect(pages).toEqual([1, 1, 1]);
    expect(new Set(ids).size).toBe(3);
    const sequences: number[] = [];
    let turns = 0;
    for (let after = 0; ; turns += 1) {
      const { events, nextCursor } = await runs.events('run-1', { after });
      if (events.length === 0) break;
      sequences.push(...events.map(({ id }) => id));
      after = nextCursor;
    }
    expect(turns).toBeGreaterThan(1);
    expect(sequences).toEqual(sequences.map((_, index) => index + 1));
    expect((await memory.load('run-1'))?.run.sequence).toBe(sequences.length);
  });

  it('STR-1: a message is accepted without a look at those that wait', async () => {
    await begin([{ name: 'pay', args: {} }]);
    await reaches('waiting');
    const shown: number[] = [];
    const transition = store.transition.bind(store);
    store.transition = (request) =>
      transition({
        ...request,
        decide: (locked) => {
          shown.push(locked.inbox.length);
          return request.decide(locked);
        },
      });
    for (let n = 0; n < 20; n += 1)
      await engine.runs.steer('run-1', `hello ${n}`, { sender: 'ann', requestId: `m-${n}` });
    await engine.runs.steer('run-1', 'hello 3', { sender: 'ann', requestId: 'm-3' });
    expect(shown).toEqual([...Array.from({ length: 20 }, () => 0), 1]);
  });
});
