// What operators see without asking: one line for each failure, with ids and with the stack of what host code threw.
import type { JsonObject } from '../../lib/contracts/json.js';
import { ToolDeniedError } from '../../lib/errors/run.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { mortalEngine } from '../support/crash.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const MISTAKE = () => (undefined as unknown as { id: string }).id;
const STACK = /^TypeError: Cannot read properties of undefined \(reading 'id'\)\n\s+at .*logs\.spec/;

async function ranWith(run: (input: JsonObject) => unknown, options: ToolOptions = {}) {
  const model = scriptedModel([{ calls: [{ name: 'work', args: { secret: 'canary' } }] }, { text: 'done' }]);
  const engine = await engineOver(new MemoryRunStore(), agent(model, [tool('work', run, options)]));
  const ended = await engine.runs.startAndWait({ agent: 'support', prompt: 'canary' });
  expect(JSON.stringify(engine.logged)).not.toContain('canary');
  return { engine, ended };
}

describe('One line in the log', () => {
  it('tells of a tool that throws, with run, operation, tool and stack', async () => {
    const { engine, ended } = await ranWith(MISTAKE);
    expect(ended.status).toBe('completed');
    expect(engine.logged).toEqual([
      {
        level: 'warn',
        message: 'a tool failed',
        fields: { runId: ended.id, operation: 'r1.m1.t0', tool: 'work', stack: expect.stringMatching(STACK) },
      },
    ]);
  });

  it.each<[string, (input: JsonObject) => unknown, ToolOptions, string]>([
    ['a validator', () => 1, { parse: MISTAKE as never }, 'the check of a call threw; the arguments count as invalid'],
    ['an approval rule', () => 1, { asks: MISTAKE as never }, 'an approval rule threw; a person is asked'],
    [
      'a guard, by mistake',
      () => {
        throw new ToolDeniedError('A guard refused this call.', { cause: caught(MISTAKE) });
      },
      {},
      'a tool failed',
    ],
  ])('tells of %s that throws', async (_title, run, options, message) => {
    const { engine } = await ranWith(run, options);
    expect(engine.logged).toHaveLength(1);
    expect(engine.logged[0]).toMatchObject({
      level: 'warn',
      message,
      fields: { operation: 'r1.m1.t0', tool: 'work', stack: expect.stringMatching(STACK) },
    });
  });

  it('PPL-1a: an approval rule that throws asks a person, without its words', async () => {
    const { ended } = await ranWith(() => 1, {
      asks: () => {
        throw new RangeError('hidden words');
      },
    });
    expect(ended.interactions).toMatchObject([{ reason: expect.stringContaining('rule failed (RangeError)') }]);
    expect(JSON.stringify(ended)).not.toContain('hidden words');
  });

  it('does not tell of a guard that refuses', async () => {
    const refusal = Object.assign(new Error('no'), { getResponse: () => 'no' });
    const { engine } = await ranWith(() => {
      throw new ToolDeniedError('no', { cause: refusal });
    });
    expect(engine.logged).toEqual([]);
  });

  it('tells of a model client that throws, and of the run that fails of it', async () => {
    const model = { name: 'host', generate: () => Promise.reject(caught(MISTAKE)) };
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    const run = await engine.runs.startAndWait({ agent: 'support', prompt: 'x' });
    expect(run.status).toBe('failed');
    expect(engine.logged).toEqual([
      {
        level: 'warn',
        message: 'a model request failed',
        fields: expect.objectContaining({
          runId: run.id,
          operation: 'r1.m1',
          attempt: 1,
          stack: expect.stringMatching(STACK),
        }),
      },
      {
        level: 'error',
        message: 'a run failed',
        fields: { runId: run.id, agent: 'support', code: 'MODEL_CALL_FAILED' },
      },
    ]);
  });

  it('tells of a dead worker’s run that is taken over, of its unknown outcome, and that somebody has to look', async () => {
    const store = new MemoryRunStore();
    const inside = signal();
    const script = [{ calls: [{ name: 'pay' }] }];
    const pay = tool('pay', () => (inside.resolve(), new Promise(() => undefined)), { recovery: 'manual' });
    const first = await mortalEngine(store, agent(scriptedModel(script), [pay]));
    const { id: runId } = await first.runs.start({ agent: 'support', prompt: 'x' });
    await inside.promise;
    await first.crash();
    const second = await engineOver(store, agent(scriptedModel(script, { place: 'transcript' }), [pay]));
    expect((await second.runs.result(runId)).status).toBe('needs_attention');
    expect(second.logged).toEqual([
      {
        level: 'warn',
        message: 'a run was taken over; its worker was gone',
        fields: expect.objectContaining({ runId, attempt: 2, previousOwner: first.worker.workerId }),
      },
      {
        level: 'warn',
        message: 'the outcome of a call is unknown',
        fields: { runId, agent: 'support', operation: 'r1.m1.t0', interruptedBy: 'crash' },
      },
      {
        level: 'error',
        message: 'a run needs attention',
        fields: { runId, agent: 'support', reason: 'uncertain_outcome', operation: 'r1.m1.t0' },
      },
    ]);
  });
});

function caught(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
