import { afterEach, describe, expect, it } from '@jest/globals';
import type { RecoveryPolicy } from '../../lib/contracts/policies.js';
import type { ProbeResult } from '../../lib/contracts/ports/tool-caller.port.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, journalOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal, type Signal } from '../support/signal.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const TIMEOUT_MS = 1_000;
const LEASE_MS = 60_000;

/** A tool that ends only when it is told to, whatever its signal says; each execution is one of `executions`. */
async function deaf(recovery: RecoveryPolicy, options: ToolOptions = {}) {
  const clock = new ManualClock();
  const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
  const executions: (Signal<unknown> & {
    aborted: () => boolean;
    attempt: number;
    deadline: Date | null;
    operationId: string;
  })[] = [];
  const work = tool(
    'work',
    (_, context) => {
      const execution = {
        ...signal<unknown>(),
        aborted: () => context.signal.aborted,
        attempt: context.attempt,
        deadline: context.deadline,
        operationId: context.operationId,
      };
      executions.push(execution);
      return execution.promise;
    },
    { recovery, timeoutMs: TIMEOUT_MS, ...options },
  );
  const model = scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'done' }]);
  const engine = await engineOver(
    store,
    agent(model, [work]),
    { leaseMs: LEASE_MS, pollMs: 1_000, pollIdleMs: 1_000 },
    clock,
  );
  const run = await engine.runs.start(start);
  await clock.advance(0);
  const types = async () =>
    (await journalOf(store, run.id)).map(({ type }) => type).filter((type) => type.startsWith('tool.'));
  return { clock, store, engine, model, executions, types, id: run.id };
}

describe('a tool that does not end in time and does not listen', () => {
  it('MOD-8: is told by its signal, and knows its deadline from the beginning', async () => {
    const { clock, executions } = await deaf('safe');
    expect(executions[0]).toMatchObject({ deadline: new Date(clock.now() + TIMEOUT_MS), attempt: 1 });
    expect(executions[0]?.aborted()).toBe(false);
    await clock.advance(TIMEOUT_MS);
    expect(executions[0]?.aborted()).toBe(true);
  });

  it('MOD-8: safe → an error result, at once; what it returns later is discarded and told to operators (B157)', async () => {
    const { clock, engine, executions, store, id, types } = await deaf('safe');
    await clock.advance(TIMEOUT_MS);
    expect(await engine.runs.get(id)).toMatchObject({ status: 'completed' });
    expect(await entriesOf(store, id, 'tool.failed')).toMatchObject([
      { outcome: 'error', error: { code: 'TOOL_TIMED_OUT', message: expect.stringContaining('1000 ms') } },
    ]);
    const before = await journalOf(store, id);
    executions[0]?.resolve('late');
    await clock.advance(0);
    expect(await journalOf(store, id)).toEqual(before);
    expect(await types()).toEqual(['tool.started', 'tool.failed']);
    expect(engine.logged).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        fields: expect.objectContaining({ tool: 'work', operation: 'r1.m1.t0' }),
      }),
    );
    expect(executions).toHaveLength(1);
  });

  it('MOD-8: manual → uncertain, never repeated; a person settles it', async () => {
    const { clock, engine, executions, id } = await deaf('manual');
    await clock.advance(TIMEOUT_MS);
    expect(await engine.runs.get(id)).toMatchObject({
      status: 'needs_attention',
      attention: { reason: 'uncertain_outcome', operationKey: 'r1.m1.t0', operations: ['r1.m1.t0'] },
    });
    expect((await engine.runs.snapshot(id)).operations[1]).toMatchObject({
      status: 'uncertain',
      interruptedBy: 'timeout',
    });
    await engine.runs.resume(id);
    await clock.advance(10_000);
    expect((await engine.runs.get(id)).status).toBe('needs_attention');
    expect(executions).toHaveLength(1);
  });

  it('MOD-8: inform → the model is told that the outcome is unknown, and goes on', async () => {
    const { clock, engine, model, executions, store, id } = await deaf('inform');
    await clock.advance(TIMEOUT_MS);
    expect((await engine.runs.get(id)).status).toBe('completed');
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      content: [{ outcome: 'unknown', output: expect.stringContaining('unknown') }],
    });
    expect(await entriesOf(store, id, 'tool.uncertain')).toMatchObject([
      { reportedToModel: true, interruptedBy: 'timeout' },
    ]);
    expect(executions).toHaveLength(1);
  });

  // B157
  it('MOD-8: idempotent → once more under the same operation id, then as manual (decision timeouts-and-crashes)', async () => {
    const { clock, engine, executions, types, id } = await deaf('idempotent');
    await clock.advance(TIMEOUT_MS);
    expect(executions).toHaveLength(2);
    expect(executions[1]).toMatchObject({ attempt: 2, operationId: executions[0]?.operationId });
    await clock.advance(TIMEOUT_MS);
    expect(await engine.runs.get(id)).toMatchObject({ status: 'needs_attention' });
    expect(await types()).toEqual(['tool.started', 'tool.started', 'tool.uncertain']);
    expect(executions).toHaveLength(2);
  });

  // B157
  it('MOD-8: idempotent → the result of the second execution counts, that of the first does not', async () => {
    const { clock, engine, executions, store, id } = await deaf('idempotent');
    await clock.advance(TIMEOUT_MS);
    executions[0]?.resolve('of the first');
    executions[1]?.resolve('of the second');
    await clock.advance(0);
    expect((await engine.runs.get(id)).status).toBe('completed');
    expect(await entriesOf(store, id, 'tool.completed')).toMatchObject([{ output: 'of the second' }]);
  });

  describe('with a probe', () => {
    const asked: string[] = [];
    const probing = (answer: () => ProbeResult | Promise<ProbeResult>) =>
      deaf('probe', {
        probe: (call) => {
          asked.push(call.operationId);
          return answer();
        },
      });

    it('MOD-8: is asked only after the tool has ended (decision timeouts-and-crashes)', async () => {
      asked.length = 0;
      const { clock, engine, executions, store, id } = await probing(() => ({ result: 'happened', output: 'found' }));
      await clock.advance(TIMEOUT_MS + 10_000);
      expect(asked).toEqual([]);
      expect((await engine.runs.get(id)).status).toBe('running');
      executions[0]?.resolve('late');
      await clock.advance(0);
      expect(asked).toEqual([`${id}/r1.m1.t0`]);
      expect((await engine.runs.get(id)).status).toBe('completed');
      expect(await entriesOf(store, id, 'tool.probed')).toMatchObject([{ result: 'happened', output: 'found' }]);
      expect(await entriesOf(store, id, 'tool.completed')).toEqual([]);
    });

    it('MOD-8: or after a lease has passed', async () => {
      asked.length = 0;
      const { clock, engine, executions, id } = await probing(() => ({ result: 'did-not-happen' }));
      await clock.advance(TIMEOUT_MS + LEASE_MS - 1);
      expect(asked).toEqual([]);
      await clock.advance(1);
      expect(asked).toHaveLength(1);
      expect(executions).toHaveLength(2);
      executions[1]?.resolve('second');
      await clock.advance(0);
      expect(await engine.runs.get(id)).toMatchObject({ status: 'completed' });
    });

    it('MOD-8: or by the next attempt, where the lease had ended when the tool did (simulation, seed 175)', async () => {
      asked.length = 0;
      const { clock, engine, executions, store, id } = await probing(() => ({ result: 'happened', output: 'found' }));
      store.fail('heartbeat');
      clock.jump(LEASE_MS + 1_000);
      await clock.advance(0);
      executions[0]?.resolve('late');
      await clock.advance(0);
      expect(asked).toEqual([]);
      expect((await engine.runs.get(id)).status).not.toBe('needs_attention');
      store.heal('heartbeat');
      await clock.advance(5_000);
      expect(asked).toHaveLength(1);
      expect((await engine.runs.get(id)).status).toBe('completed');
    });

    it('MOD-8: one that does not know leads to a person', async () => {
      const { clock, engine, executions, id } = await probing(() => ({ result: 'unknown' }));
      await clock.advance(TIMEOUT_MS);
      executions[0]?.resolve('late');
      await clock.advance(0);
      expect(await engine.runs.get(id)).toMatchObject({
        status: 'needs_attention',
        attention: { reason: 'uncertain_outcome' },
      });
    });

    it('MOD-8: one that hangs itself leads to a person too, and never to a run that waits for nobody', async () => {
      const { clock, engine, executions, store, id } = await probing(() => new Promise(() => undefined));
      await clock.advance(TIMEOUT_MS);
      executions[0]?.resolve('late');
      await clock.advance(TIMEOUT_MS);
      expect(await engine.runs.get(id)).toMatchObject({
        status: 'needs_attention',
        attention: { reason: 'uncertain_outcome' },
      });
      expect(await entriesOf(store, id, 'tool.probed')).toMatchObject([{ result: 'unknown' }]);
    });

    it('RUN-2: is not asked about a run that was cancelled meanwhile', async () => {
      asked.length = 0;
      const { clock, engine, executions, id } = await probing(() => ({ result: 'happened', output: 'found' }));
      await clock.advance(TIMEOUT_MS);
      await engine.runs.cancel(id);
      executions[0]?.resolve('late');
      await clock.advance(LEASE_MS * 2);
      expect(asked).toEqual([]);
    });

    it('leaves no timer behind for a tool that ended', async () => {
      const { clock, engine, executions, id } = await probing(() => ({ result: 'happened', output: 'found' }));
      await clock.advance(TIMEOUT_MS);
      executions[0]?.resolve('late');
      await clock.advance(0);
      expect((await engine.runs.get(id)).status).toBe('completed');
      await engine.stop();
      expect(clock.pending).toBe(0);
    });
  });

  it('JRN-5: a probe that hangs, of a tool without a timeout, leads to a person a minute after the crash was found', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const hangs = tool('work', () => new Promise(() => undefined), {
      recovery: 'probe',
      probe: () => new Promise(() => undefined),
    });
    const agents = agent(scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'done' }]), [hangs]);
    const options = { leaseMs: LEASE_MS, pollMs: 1_000, pollIdleMs: 1_000 };
    const crashed = await engineOver(store, agents, options, new ManualClock());
    const { id } = await crashed.runs.start(start);
    await clock.advance(0);
    crashed.forget();
    clock.jump(LEASE_MS * 2);
    const engine = await engineOver(store, agents, options, clock);
    await engine.recovery.reconcile();
    await clock.advance(59_000);
    expect(await engine.runs.get(id)).toMatchObject({ status: 'running', attempt: 2 });
    await clock.advance(2_000);
    expect(await engine.runs.get(id)).toMatchObject({
      status: 'needs_attention',
      attention: { reason: 'uncertain_outcome' },
    });
  });

  it('MOD-8: a guard that hangs is a timeout before the method was entered: an error, whatever the policy', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const made = tool('work', () => 'never', { recovery: 'manual', timeoutMs: TIMEOUT_MS });
    const hanging = signal();
    let entered = false;
    const work = {
      ...made,
      caller: {
        ...made.caller,
        call: async (...[, , entry]: Parameters<typeof made.caller.call>) => {
          await hanging.promise;
          await entry.onEnter();
          entered = true;
        },
      },
    };
    const engine = await engineOver(
      store,
      agent(scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'done' }]), [work]),
      {},
      clock,
    );
    const run = await engine.runs.start(start);
    await clock.advance(TIMEOUT_MS);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed' });
    expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([{ error: { code: 'TOOL_TIMED_OUT' } }]);
    // And when the guard lets it through after all, the method is not entered any more.
    hanging.resolve();
    await clock.advance(0);
    expect(entered).toBe(false);
  });

  it('MOD-8: without a timeout a tool may take as long as it likes; its lease is renewed all the while (B021)', async () => {
    const { clock, engine, executions, id, store } = await deaf('manual', { timeoutMs: null });
    const second = await engineOver(
      store,
      agent(scriptedModel([])),
      { leaseMs: LEASE_MS, pollMs: 1_000, pollIdleMs: 1_000 },
      clock,
    );
    for (let sweep = 0; sweep < 6; sweep++) {
      await clock.advance(LEASE_MS / 2);
      await second.recovery.reconcile();
    }
    expect(executions).toHaveLength(1);
    executions[0]?.resolve('took long');
    await clock.advance(0);
    expect(await engine.runs.get(id)).toMatchObject({ status: 'completed', attempt: 1 });
  });
});

describe('a model that does not answer in time', () => {
  it('MOD-8: is a failure of that request, repeated by the retry policy, also when it ignores its signal (B030)', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const model = scriptedModel([
      ({ signal: _signal }, { attempt }) => (attempt < 3 ? { hang: 'deaf' } : { text: 'done' }),
    ]);
    const engine = await engineOver(
      store,
      agent(model, [], {
        modelTimeoutMs: 5_000,
        modelRetry: { maxAttempts: 3, initialDelayMs: 1_000, maxDelayMs: 30_000, maxRetryAfterMs: 1 },
      }),
      {},
      clock,
    );
    const run = await engine.runs.start(start);
    await clock.advance(5_000);
    expect((await engine.runs.get(run.id)).status).toBe('retry_wait');
    await clock.advance(20_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed', output: 'done' });
    expect(await entriesOf(store, run.id, 'model.attempt_failed')).toMatchObject([
      { error: { message: expect.stringContaining('5000 ms'), retryable: true } },
      {},
    ]);
  });
});
