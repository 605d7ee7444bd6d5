import { afterEach, describe, expect, it } from '@jest/globals';
import type { ParsedArguments } from '../../lib/contracts/ports/tool-caller.port.js';
import type { ToolMessage } from '../../lib/contracts/message.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';

afterEach(stopEngines);

const TIMEOUT_MS = 1_000;

/** A tool whose validator never answers when it is given `hang`. */
async function scene(options: ToolOptions = {}) {
  const clock = new ManualClock();
  const store = new MemoryRunStore({ clock: () => clock.now() });
  const entered: unknown[] = [];
  const work = tool('work', ({ n }) => void entered.push(n), { recovery: 'manual', timeoutMs: TIMEOUT_MS, ...options });
  const { parse } = work.caller;
  work.caller.parse = (args) => (args['hang'] ? new Promise<ParsedArguments>(() => undefined) : parse(args));
  const model = scriptedModel([
    {
      calls: [
        { name: 'work', args: { n: 1 } },
        { name: 'work', args: { n: 2, hang: true } },
        { name: 'work', args: { n: 3 } },
      ],
    },
    { text: 'done' },
  ]);
  const engine = await engineOver(store, agent(model, [work]), { pollMs: 1_000, pollIdleMs: 1_000 }, clock);
  const { id } = await engine.runs.start({ agent: 'support', prompt: 'go' });
  await clock.advance(0);
  const results = () => (model.requests[1]?.messages.at(-1) as ToolMessage).content;
  return { clock, store, engine, entered, id, results };
}

describe('a validator that hangs', () => {
  it('MOD-8: is an error of its call after the timeout of the tool, whose method was never entered', async () => {
    const { clock, store, engine, entered, id, results } = await scene();
    expect(await entriesOf(store, id, 'model.completed')).toEqual([]);
    await clock.advance(TIMEOUT_MS);
    expect((await engine.runs.get(id)).status).toBe('completed');
    expect(entered).toEqual([1, 3]);
    expect(results().map(({ outcome }) => outcome)).toEqual(['success', 'error', 'success']);
    expect(results()[1]?.output).toBe('The tool was not run: the check of the arguments did not end within 1000 ms.');
    expect((await entriesOf(store, id, 'tool.started')).map(({ key }) => key)).toEqual(['r1.m1.t0', 'r1.m1.t2']);
  });

  it('PPL-3: refuses an edit that cannot be checked in time, and leaves the ask open', async () => {
    const { clock, engine, id, entered } = await scene({ asks: ({ n }) => (n === 1 ? {} : null) });
    await clock.advance(TIMEOUT_MS);
    const [ask] = (await engine.runs.pendingInteractions({ runId: id })).interactions;
    const edit = (args: Record<string, number | boolean>) =>
      engine.runs.respond(id, ask!.id, { decision: 'approve', by: 'ann', arguments: args });
    const refused = expect(edit({ n: 5, hang: true })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
      details: { problems: ['the check of the arguments did not end within 1000 ms'] },
    });
    await clock.advance(TIMEOUT_MS);
    await refused;
    await edit({ n: 6 });
    await clock.advance(0);
    expect((await engine.runs.get(id)).status).toBe('completed');
    expect(entered).toEqual([3, 6]);
  });

  it('RUN-2: without a timeout does not keep its run from being cancelled', async () => {
    const { clock, engine, id } = await scene({ timeoutMs: null });
    await clock.advance(60_000);
    expect((await engine.runs.get(id)).status).toBe('running');
    expect((await engine.runs.cancel(id)).status).toBe('cancelled');
  });
});
