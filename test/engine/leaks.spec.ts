import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { ModelClient } from '../../lib/contracts/ports/model-client.port.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

/** Asks for so many calls a turn, so many turns long; looks at nothing else of a request. */
function turning(turns: number, calls: number): ModelClient {
  let turn = 0;
  return {
    name: 'turning',
    generate: () => {
      const isLast = turn++ === turns;
      const content = isLast
        ? [{ type: 'text' as const, text: 'done' }]
        : Array.from({ length: calls }, (_, n) => ({
            type: 'tool-call' as const,
            callId: `${turn}-${n}`,
            name: 'work',
            argumentsText: `{"n":${n}}`,
          }));
      return Promise.resolve({ content, finishReason: isLast ? 'stop' : 'tool-calls', usage: { totalTokens: 1 } });
    },
  };
}

describe('a long run', () => {
  it('B168: 300 turns of 15 parallel calls leave no listener, no timer and no warning behind', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const added = jest.spyOn(AbortSignal.prototype, 'addEventListener');
    const removed = jest.spyOn(AbortSignal.prototype, 'removeEventListener');
    try {
      const clock = new ManualClock();
      const store = new MemoryRunStore({ clock: () => clock.now() });
      const signals = new Set<AbortSignal>();
      const work = tool('work', (_, context) => (signals.add(context.signal), 'ok'), { timeoutMs: 1_000 });
      const model = turning(300, 15);
      const definition = agent(model, [work], { maxTurns: 400, toolConcurrency: 15 });
      const engine = await engineOver(store, definition, { pollMs: 1_000, pollIdleMs: 1_000 }, clock);
      const run = await engine.runs.start(start);
      const before = clock.pending;
      await until(async () => {
        if ((await engine.runs.get(run.id)).status === 'completed') return true;
        expect(clock.pending).toBeLessThan(before + 40);
        return false;
      });
      expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed', turn: 301 });
      // One controller per call: no signal lives as long as the run and gathers listeners.
      expect(signals.size).toBe(4_500);
      expect(added.mock.calls.length - removed.mock.calls.length).toBeLessThanOrEqual(1);
      await engine.stop();
      expect(clock.pending).toBe(0);
      expect(warnings.map(({ name }) => name)).not.toContain('MaxListenersExceededWarning');
    } finally {
      process.off('warning', onWarning);
      added.mockRestore();
      removed.mockRestore();
    }
  }, 60_000);

  it('JRN-3: stores each message once: what a turn costs does not grow with the transcript', async () => {
    const store = new MemoryRunStore();
    const result = 'x'.repeat(1_000);
    const bytes: number[] = [];
    const work = tool('work', async () => {
      bytes.push((await store.metrics()).journalBytes);
      return result;
    });
    const engine = await engineOver(store, agent(turning(200, 1), [work], { maxTurns: 300 }));
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    const cost = (turn: number) => (bytes[turn] as number) - (bytes[turn - 1] as number);
    expect(cost(190)).toBeLessThanOrEqual(cost(20) * 1.2);
    expect((await store.metrics()).journalBytes).toBeLessThan(500_000);
  });
});

describe('many runs', () => {
  it('leave nothing in the process once they are settled, suspended or waiting in the database', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const model = scriptedModel(
      [
        ({ messages }) =>
          JSON.stringify(messages).includes('gated') ? { calls: [{ name: 'gated' }] } : { text: 'done' },
      ],
      { place: 'transcript' },
    );
    const gated = tool('gated', () => 'ok', { approval: 'rule', asks: () => ({}) });
    const engine = await engineOver(store, agent(model, [gated]), { pollMs: 1_000, pollIdleMs: 1_000 }, clock);
    await clock.advance(0);
    const idle = clock.pending;
    const waits = [];
    for (let n = 0; n < 200; n++) {
      const run = await engine.runs.start({ ...start, prompt: n % 2 === 0 ? 'plain' : 'gated' });
      waits.push(engine.runs.result(run.id));
      await clock.advance(0);
    }
    const ended = await Promise.all(waits);
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['completed', 'waiting']));
    expect(engine.worker.status().activeRuns).toBe(0);
    expect(clock.pending).toBe(idle);
    await engine.stop();
    expect(clock.pending).toBe(0);
  });

  it('a wait that is given up leaves no listener on its signal', async () => {
    const model = scriptedModel([{ hang: true }]);
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    const run = await engine.runs.start(start);
    await model.requested(1);
    const stop = new AbortController();
    const added = jest.spyOn(stop.signal, 'addEventListener');
    const removed = jest.spyOn(stop.signal, 'removeEventListener');
    for (let n = 0; n < 20; n++) await engine.runs.result(run.id, { timeout: 1, signal: stop.signal });
    expect(removed.mock.calls.length).toBeGreaterThanOrEqual(added.mock.calls.length);
    await engine.runs.cancel(run.id);
  });
});

describe('concurrent ends of one turn', () => {
  it('PPL-1: an ask that is committed while sibling calls end neither loses their results nor breaks the numbering', async () => {
    for (let round = 0; round < 25; round++) {
      const store = new MemoryRunStore();
      const releases = Array.from({ length: 6 }, () => signal());
      const names = ['gated', 'asks', ...releases.map((_, n) => `slow${n}`)];
      const tools = [
        tool('gated', () => 'ok', { approval: 'rule', asks: () => ({ reason: 'x' }) }),
        tool('asks', async (_, context) => {
          await releases[0]?.promise;
          return context.ask({ id: 'q', text: 'which?' });
        }),
        ...releases.map((release, n) => tool(`slow${n}`, () => release.promise.then(() => n))),
      ];
      const model = scriptedModel([{ calls: names.map((name) => ({ name })) }, { text: 'done' }]);
      const engine = await engineOver(store, agent(model, tools));
      const run = await engine.runs.start(start);
      // All of them end within a few turns of each other, in another order each round.
      for (const [place, release] of releases.entries()) {
        for (let turn = 0; turn < (round * (place + 1)) % 7; turn++) await Promise.resolve();
        release.resolve();
      }
      const waiting = await engine.runs.result(run.id);
      expect(waiting).toMatchObject({ status: 'waiting', waitingFor: ['approval', 'question'] });
      expect(waiting.interactions).toHaveLength(2);
      expect(engine.worker.status().state).toBe('ready');
      const { operations } = await engine.runs.snapshot(run.id);
      expect(operations.filter(({ status }) => status === 'completed')).toHaveLength(7);
      await engine.stop();
    }
  });
});
