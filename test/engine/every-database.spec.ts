/** What drivers and databases do differently, where a caller could see it. On every store. */
import { afterEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ModelClient } from '../../lib/contracts/ports/model-client.port.js';
import type { RunObserver } from '../../lib/contracts/ports/host.port.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import {
  appendNotes,
  beat,
  change,
  claim,
  loaded,
  running,
  submit,
  totalsOf,
  upTo,
} from '../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines, tool, type TestEngine } from '../support/engine-harness.js';
import { entriesOf, journalOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { assertSound } from '../support/sound-journal.js';
import { ALL_ENGINE_STORES, type SharedStore } from '../support/stores.js';
import { until } from '../support/until.js';

const start = { agent: 'support', prompt: 'go' };
const MIB = 1_048_576;

describe.each(ALL_ENGINE_STORES)('on $name', ({ open, isServer }) => {
  let opened: SharedStore;
  beforeEach(async () => {
    opened = await open();
  });
  afterEach(async () => {
    await stopEngines();
    await opened.dispose();
  });

  it('I5: twenty calls that end in the same moment lose nothing, in many runs at once (B023)', async () => {
    const runs = isServer ? 20 : 50;
    const calls = Array.from({ length: 20 }, (_, n) => ({ name: 'work', args: { n } }));
    // Refuses a transcript in which a call has not exactly one result, right behind it and under its own id.
    const model = scriptedModel([{ calls }, { text: 'done' }], { place: 'transcript', strict: ['results', 'ids'] });
    const engine = await engineOver(opened.store, agent(model, [tool('work', ({ n }) => n)], { toolConcurrency: 20 }), {
      maxConcurrentRuns: runs,
    });
    const ended = await Promise.all(upTo(runs).map(() => engine.runs.startAndWait(start)));
    expect(model.requests).toHaveLength(2 * runs);
    const told = model.requests.map(({ messages }) => messages.at(-1)).filter((message) => message?.role === 'tool');
    expect(told.map(({ content }) => content.map(({ output }) => output))).toEqual(
      upTo(runs).map(() => calls.map(({ args }) => args.n)),
    );
    for (const { id, status } of ended) {
      expect(status).toBe('completed');
      expect((await entriesOf(opened.store, id, 'tool.completed')).length).toBe(20);
      await assertSound(opened.store, id);
    }
  });

  it('R210: a run that failed by a bad reply and at its turn limit goes on in another process; usage is kept (I9)', async () => {
    const bad = { text: 'Half', finishReason: 'length' as const };
    const first = await engineOver(opened.store, agent(scriptedModel([bad]), [], { maxTurns: 1 }));
    const run = await first.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'failed', output: 'Half', error: { code: 'OUTPUT_TRUNCATED' } });
    await first.stop();
    const model = scriptedModel([{ parts: [{ type: 'opaque', value: 1 }], finishReason: 'pause' }, { text: 'done' }]);
    const second = await engineOver(opened.store, agent(model));
    await second.runs.retry(run.id);
    expect(await second.runs.result(run.id)).toMatchObject({ status: 'failed', error: { code: 'MAX_TURNS_EXCEEDED' } });
    await second.runs.retry(run.id, { maxTurns: 2 });
    const ended = await second.runs.result(run.id);
    expect(ended).toMatchObject({ status: 'completed', output: 'done', turn: 2, usage: { totalTokens: 45 } });
    expect((await entriesOf(opened.store, run.id, 'model.attempt_failed'))[0]).toMatchObject({
      finishReason: 'length',
      text: 'Half',
      usage: { totalTokens: 15 },
    });
    await assertSound(opened.store, run.id);
  });

  // B045: from the observer, which is the earliest moment at which anybody can know of the ask.
  it('I2: an ask that is told of can be answered at once, also with arguments of 1 MB behind other such turns', async () => {
    const big = 'y'.repeat(MIB - 200);
    const turns = isServer ? 3 : 8;
    const model = scriptedModel(
      [...upTo(turns).map((n) => ({ calls: [{ name: 'send', args: { n, big } }] })), { text: 'done' }],
      { place: 'transcript' },
    );
    const refusals: unknown[] = [];
    const office: { engine?: TestEngine } = {};
    const observer: RunObserver = {
      onEvent: ({ type, runId, details }) => {
        if (type !== 'interaction.requested') return;
        void office.engine?.runs
          .respond(runId, String(details['interactionId']), { decision: 'approve', by: 'ann' })
          .catch((error: unknown) => refusals.push(error));
      },
    };
    const sent: unknown[] = [];
    const definition = agent(model, [
      tool('send', ({ n, big: text }) => sent.push([n, (text as string).length]), {
        recovery: 'manual',
        asks: () => ({ reason: 'It is large.' }),
      }),
    ]);
    office.engine = await engineOver(await opened.second(), definition, { worker: false });
    const worker = await engineOver(opened.store, definition, { pollMs: 20 }, undefined, { observers: [observer] });
    const run = await worker.runs.start(start);
    await until(async () => refusals.length > 0 || (await worker.runs.get(run.id)).phase === 'settled', 'the end', {
      withinMs: 30_000,
      everyMs: 20,
    });
    expect(refusals).toEqual([]);
    expect(await worker.runs.get(run.id)).toMatchObject({ status: 'completed' });
    expect(sent).toEqual(upTo(turns).map((n) => [n, big.length]));
  });

  describe('numbers', () => {
    it('B112: a journal is in order and its sums are right beyond 9 and 99 entries, and numbers are numbers', async () => {
      const turns = 50;
      const usage = { inputTokens: 9, outputTokens: 90, totalTokens: 99 };
      const model = scriptedModel(
        [...upTo(turns - 1).map((n) => ({ calls: [{ name: 'work', args: { n } }], usage })), { text: 'done', usage }],
        { place: 'transcript' },
      );
      const engine = await engineOver(opened.store, agent(model, [tool('work', ({ n }) => n)], { maxTurns: turns }));
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'completed', turn: turns, attempt: 1 });
      expect(run.usage).toMatchObject({
        inputTokens: 9 * turns,
        outputTokens: 90 * turns,
        totalTokens: 99 * turns,
      });
      const reader = await engineOver(await opened.reopen(), agent(scriptedModel([])), { worker: false });
      const { events } = await reader.runs.events(run.id);
      expect(events.length).toBeGreaterThan(100);
      expect(events.map(({ id }) => id)).toEqual(upTo(events.length));
      const outputs = events.filter((event) => event.type === 'tool.completed').map(({ data }) => data.output);
      expect(outputs).toEqual(upTo(turns - 1));
      expect(numbersOf(await reader.runs.get(run.id))).toEqual(numbersOf(run));
      const [listed] = (await reader.runs.list()).runs;
      expect(textsThatAreNumbers({ run: await reader.runs.get(run.id), listed, events })).toEqual([]);
    });

    it.each([9, 99])('B112: attempt %i is older than the next one', async (attempt) => {
      const { store } = opened;
      await submit(store, { id: 'r', attempt });
      await beat(store, 'w');
      expect(await claim(store, 'r', 'w')).toBe(attempt + 1);
      await expect(appendNotes(store, 'r', attempt, ['stale'])).rejects.toMatchObject({ code: 'FENCED' });
      await appendNotes(store, 'r', attempt + 1, ['fresh']);
      expect((await loaded(store, 'r')).attempt).toBe(attempt + 1);
      // Twelve entries one by one, and a hundred.
      for (const n of upTo(110)) await appendNotes(store, 'r', attempt + 1, [n], totalsOf(n));
      expect((await loaded(store, 'r')).totals.usage.totalTokens).toBe(1_100);
      const sequences = (await journalOf(store, 'r')).map(({ sequence }) => sequence);
      expect(sequences).toEqual(upTo(sequences.length));
    });

    it('B113: times are kept to the millisecond', async () => {
      const second = 1_790_000_000_000;
      const { store } = opened;
      for (const ms of [0, 1, 9, 10, 99, 100, 999]) {
        const at = second + ms;
        const times = {
          createdAt: at,
          deadlineAt: at,
          nextAttemptAt: at,
          startedAt: at,
          claimedAt: at,
          finishedAt: at,
        };
        await submit(store, { id: `r-${ms}`, ...times });
        expect(await loaded(store, `r-${ms}`)).toMatchObject(times);
        await submit(store, { id: `c-${ms}` });
        await change(store, `c-${ms}`, { deadlineAt: at, nextAttemptAt: at });
        expect(await loaded(store, `c-${ms}`)).toMatchObject({ deadlineAt: at, nextAttemptAt: at });
      }
      const reader = await opened.reopen();
      expect((await loaded(reader, 'r-999')).nextAttemptAt).toBe(second + 999);
    });

    it('B113: a lease of 150 ms lasts 150 ms', async () => {
      const { store } = opened;
      await running(store, { id: 'r' }, 'w');
      for (const leaseMs of [150, 151, 159]) {
        const { now, leaseExpiresAt } = await beat(store, 'w', leaseMs);
        expect(leaseExpiresAt - now).toBe(leaseMs);
        expect((await store.load('r'))?.lease?.expiresAt).toBe(leaseExpiresAt);
      }
      let last = await beat(store, 'w', 150);
      const lives = async (): Promise<boolean> => (await store.liveWorkers()).some(({ id }) => id === 'w');
      expect(await lives()).toBe(true);
      await until(async () => !(await lives()), 'its end', { everyMs: 2 });
      const { now } = await beat(store, 'other');
      expect(now).toBeGreaterThanOrEqual(last.leaseExpiresAt);
      // Renewed again and again it does not end, whatever fraction of a second it is.
      for (let beats = 0; beats < 20; beats += 1) {
        const next = await beat(store, 'w', 150);
        expect(next.leaseExpiresAt).toBeGreaterThanOrEqual(last.leaseExpiresAt);
        expect(await claim(store, 'r', 'thief')).toBeNull();
        last = next;
      }
    });
  });

  // What a list may be asked for, with every type that a value may have.
  it('B118: filters take numbers, booleans and texts, and values of a run every type', async () => {
    const engine = await engineOver(opened.store, agent(scriptedModel([])), { worker: false });
    const metadata = { active: true, gone: false, amount: 12.5, zero: 0, since: '2026-01-01T00:00:00.000Z' };
    const deadline = new Date(Date.now() + 3_600_000);
    const { id } = await engine.runs.start({ ...start, metadata, deadline });
    await engine.runs.start({ ...start, metadata: { active: false, gone: true, amount: 12, zero: 1 } });
    for (const [key, value] of Object.entries(metadata))
      expect([key, (await engine.runs.list({ metadata: { [key]: value } })).runs.map((run) => run.id)]).toEqual([
        key,
        [id],
      ]);
    expect((await engine.runs.list({ metadata, agent: 'support', phase: 'active', limit: 5 })).runs).toHaveLength(1);
    expect((await engine.runs.pendingInteractions({ metadata, agent: 'support' })).interactions).toEqual([]);
    expect((await engine.runs.get(id)).metadata).toEqual(metadata);
  });

  it('JRN-8: an approval binds what it was shown, and a request is the same, whatever order keys come back in (B126)', async () => {
    const args: JsonObject = JSON.parse('{"b":1,"a":{"z":1,"y":2},"10":1,"9":1}') as JsonObject;
    const turned: JsonObject = JSON.parse('{"9":1,"10":1,"a":{"y":2,"z":1},"b":1}') as JsonObject;
    // As a provider gives it: signed, so that not even the order of its keys may change.
    const opaque = JSON.parse('{"signature":"\\u00fc==","b":1,"a":{"z":1,"y":2}}') as JsonObject;
    const requests: string[] = [];
    const model: ModelClient = {
      name: 'signing',
      generate: async ({ messages }) => {
        requests.push(JSON.stringify(messages));
        const usage = { totalTokens: 1 };
        if (messages.some(({ role }) => role === 'assistant'))
          return { content: [{ type: 'text', text: 'done' }], finishReason: 'stop', usage };
        return {
          content: [
            { type: 'opaque', value: opaque },
            { type: 'tool-call', callId: 'c1', name: 'pay', argumentsText: JSON.stringify(args) },
          ],
          finishReason: 'tool-calls',
          usage,
        };
      },
    };
    const paid: JsonObject[] = [];
    const definition = agent(model, [
      tool('pay', (input) => paid.push(input), { recovery: 'manual', asks: () => ({ reason: 'money leaves' }) }),
    ]);
    const request = { ...start, requestId: 'q', metadata: { b: 1, a: 2 } };
    const first = await engineOver(opened.store, definition);
    const { id } = await first.runs.start(request);
    await first.runs.result(id);
    await first.stop();

    const reopened = await opened.reopen();
    const second = await engineOver(reopened, definition);
    expect(await second.runs.start({ requestId: 'q', metadata: { a: 2, b: 1 }, ...start })).toMatchObject({
      id,
      deduplicated: true,
    });
    const [ask] = (await second.runs.get(id)).interactions;
    await second.runs.respond(id, ask?.id as string, { decision: 'approve', by: 'ann', arguments: turned });
    expect((await second.runs.result(id)).status).toBe('completed');
    expect(paid).toEqual([args]);
    expect(requests[1]).toContain(JSON.stringify(opaque));
    await assertSound(reopened, id);
  });

  it('B129: ids and texts that look alike are not the same to any database', async () => {
    const engine = await engineOver(opened.store, agent(scriptedModel([])), { worker: false });
    const ids = ['User-1', 'user-1', 'USER-1', 'user_1', 'user-1.'];
    for (const sessionId of ids) await engine.runs.start({ ...start, sessionId, requestId: 'q' });
    for (const requestId of ids) await engine.runs.start({ ...start, requestId });
    for (const runId of ids) await engine.runs.start({ ...start, runId });
    for (const sessionId of ids) expect((await engine.runs.list({ sessionId })).runs).toHaveLength(1);
    for (const id of ids) expect((await engine.runs.get(id)).id).toBe(id);
    const texts = [
      ...ids,
      'user-1 ',
      ' user-1',
      'us\u00e9r-1',
      'use\u0301r-1',
      '\uff55ser-1',
      'stra\u00dfe',
      'strasse',
    ];
    for (const tenant of texts) await engine.runs.start({ ...start, metadata: { tenant } });
    for (const tenant of texts)
      expect([tenant, (await engine.runs.list({ metadata: { tenant } })).runs.map((run) => run.metadata)]).toEqual([
        tenant,
        [{ tenant }],
      ]);
  });

  it('RUN-2: the late result of a cancelled run moves nothing of the next one in its session, which waits for a person (B035)', async () => {
    const release = signal<string>();
    const entered = signal();
    const gated = { asks: () => ({ reason: 'money leaves' }), recovery: 'manual' as const };
    const definition = agent(
      scriptedModel([{ calls: [{ name: 'deaf' }] }, { calls: [{ name: 'pay' }] }, { text: 'done' }]),
      [
        tool('deaf', () => (entered.resolve(), release.promise), { recovery: 'manual' }),
        tool('pay', () => 'paid', gated),
      ],
    );
    const owner = await engineOver(opened.store, definition, { pollMs: 600_000, pollIdleMs: 600_000 });
    const first = await owner.runs.start({ ...start, sessionId: 's' });
    await entered.promise;
    const office = await engineOver(await opened.second(), definition, { worker: false });
    await office.runs.cancel(first.id);
    const second = await engineOver(await opened.second(), definition);
    const { id } = await second.runs.start({ ...start, sessionId: 's' });
    const waiting = await second.runs.result(id);
    expect(waiting.status).toBe('waiting');
    const all = async (): Promise<unknown> => [
      await opened.store.load(id),
      await journalOf(opened.store, id),
      await opened.store.session('s'),
    ];
    const before = await all();
    release.resolve('late');
    await until(async () => (await journalOf(opened.store, first.id)).at(-1)?.type === 'operation.late_result');
    expect(await all()).toEqual(before);
    expect((await second.runs.get(first.id)).status).toBe('cancelled');
    await second.runs.respond(id, waiting.interactions[0]?.id as string, { decision: 'approve', by: 'ann' });
    expect((await second.runs.result(id)).status).toBe('completed');
  });

  // B138: three processes that all find the same fifty.
  it('OWN-5: of fifty runs that a dead process left behind each is recovered once, however many look for them', async () => {
    const { store } = opened;
    const ids = upTo(50).map((n) => `orphan-${n}`);
    for (const id of ids) await running(store, { id }, 'dead');
    await beat(store, 'dead', 1);
    const asked: string[] = [];
    const process = async (): Promise<TestEngine> =>
      engineOver(
        await opened.second(),
        agent(
          scriptedModel([(request) => (asked.push(JSON.stringify(request)), { text: 'done' })], {
            place: 'transcript',
          }),
        ),
        { maxConcurrentRuns: 20 },
      );
    const engines = await Promise.all([process(), process(), process()]);
    const settled = async (): Promise<boolean> =>
      (await store.list({ statuses: ['completed'], limit: 100 })).items.length === ids.length;
    while (!(await settled())) await Promise.all(engines.map(({ recovery }) => recovery.reconcile()));
    expect(asked).toHaveLength(ids.length);
    for (const id of ids) {
      expect(await loaded(store, id)).toMatchObject({ attempt: 2, recoveries: 1 });
      expect(await entriesOf(store, id, 'run.lease_expired')).toHaveLength(1);
    }
  });
});

/** All numbers in a value, by path. */
function numbersOf(value: unknown, path = '$'): [string, number][] {
  if (typeof value === 'number') return [[path, value]];
  if (typeof value !== 'object' || value === null || value instanceof Date) return [];
  return Object.entries(value).flatMap(([key, inner]) => numbersOf(inner, `${path}.${key}`));
}

/** Paths of texts that are numbers: what a driver gave for a bigint, and nobody read. */
function textsThatAreNumbers(value: unknown, path = '$'): string[] {
  if (typeof value === 'string') return value !== '1' && /^\d+$/.test(value) ? [path] : [];
  if (typeof value === 'bigint') return [path];
  if (typeof value !== 'object' || value === null || value instanceof Date) return [];
  return Object.entries(value).flatMap(([key, inner]) => textsThatAreNumbers(inner, `${path}.${key}`));
}
