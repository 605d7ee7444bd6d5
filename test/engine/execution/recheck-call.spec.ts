import { afterEach, describe, expect, it } from '@jest/globals';
import type { AgentDefinition } from '../../../lib/contracts/agent-definition.js';
import type { JsonObject } from '../../../lib/contracts/json.js';
import type { ParsedArguments, ToolContext } from '../../../lib/contracts/ports/tool-caller.port.js';
import { ToolDeniedError } from '../../../lib/errors/run.errors.js';
import { scriptedModel } from '../../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';
import { approve, asksOf, reaches, World } from '../../people/world.js';
import { mortalEngine } from '../../support/crash.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../../support/engine-harness.js';
import { entriesOf } from '../../support/journal-of.js';
import { signal } from '../../support/signal.js';
import { ENGINE_STORES } from '../../support/stores.js';

afterEach(stopEngines);

type Parse = (args: JsonObject) => ParsedArguments;

/** Cannot be applied twice: what is stored is not what was given. */
const cents: Parse = ({ euros }) => ({ ok: true, input: { cents: (euros as number) * 100 } });
const otherwise: Parse = ({ euros }) => ({ ok: true, input: { cents: (euros as number) * 100, currency: 'EUR' } });
const refusing: Parse = () => ({ ok: false, problems: ['currency is required'] });

/** Deployments of one agent that differ in what the hash cannot see: how the tool reads its arguments, and what it does. */
function scene(options: ToolOptions = {}) {
  const ran: JsonObject[] = [];
  const asked = { parse: 0, probe: 0 };
  const model = scriptedModel([{ calls: [{ name: 'pay', args: { euros: 7 } }] }, { text: 'done' }], {
    place: 'transcript',
  });
  const deployed = (
    parse: Parse,
    more: ToolOptions = {},
    run: (input: JsonObject, context: ToolContext) => unknown = () => 'paid',
  ) =>
    agent(model, [
      tool(
        'pay',
        (input, context) => {
          ran.push(input);
          return run(input, context);
        },
        {
          recovery: 'manual',
          ...options,
          ...more,
          parse: (args) => {
            asked.parse++;
            return parse(args);
          },
        },
      ),
    ]);
  const told = () => JSON.stringify(model.requests.at(-1)?.messages.at(-1));
  return { ran, asked, deployed, told };
}

describe.each(ENGINE_STORES)('the arguments of a call right before it is begun, on $name', (store) => {
  async function approvedBefore(next: Parse, edited?: JsonObject) {
    const { deployed, ...rest } = scene({ asks: () => ({}) });
    const world = await World.over(store);
    const first = await world.process(deployed(cents), { resumeAfterAnswers: 'manual' });
    const { id } = await first.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(first, id, 'waiting');
    const [ask] = await asksOf(first, id, 1);
    await first.runs.respond(id, ask!.id, { ...approve, ...(edited && { arguments: edited }) });
    const second = await world.restart(deployed(next));
    await second.runs.resume(id);
    return { world, process: second, id, ask: ask!, deployed, ...rest };
  }

  it('JRN-8: are executed as they were approved while the schema reads them alike', async () => {
    const { world, process, id, ran } = await approvedBefore(cents);
    await reaches(process, id, 'completed');
    expect(ran).toEqual([{ cents: 700 }]);
    await world.end();
  });

  it('JRN-8: as edited they are read from what the approver gave', async () => {
    const { world, process, id, ran, ask } = await approvedBefore(cents, { euros: 3 });
    await reaches(process, id, 'completed');
    expect(ran).toEqual([{ cents: 300 }]);
    const again = await process.runs.respond(id, ask.id, { ...approve, arguments: { euros: 3 } });
    expect(again.decision).toMatchObject({ arguments: { cents: 300 }, givenArguments: { euros: 3 } });
    await world.end();
  });

  it.each([[undefined], [{ euros: 3 }]])(
    'JRN-8: refused by now they are invalid, and nothing is run (edited: %j)',
    async (edited) => {
      const { world, process, id, ran, told } = await approvedBefore(refusing, edited);
      await reaches(process, id, 'completed');
      expect(ran).toEqual([]);
      expect(told()).toContain('The arguments are not valid: currency is required');
      expect(await entriesOf(process.store, id, 'tool.failed')).toMatchObject([{ outcome: 'invalid_arguments' }]);
      await world.end();
    },
  );

  it('JRN-8: read otherwise by now they need a person, until the earlier schema is back', async () => {
    const { world, process, id, ran, deployed } = await approvedBefore(otherwise);
    const { attention } = await reaches(process, id, 'needs_attention');
    expect(attention).toMatchObject({ reason: 'input_drift', detail: expect.stringContaining('was not begun') });
    expect(ran).toEqual([]);
    const restored = await world.restart(deployed(cents));
    await restored.runs.resolveTool(id, { key: 'r1.m1.t0', notHappened: true, by: 'ann' });
    await reaches(restored, id, 'completed');
    expect(ran).toEqual([{ cents: 700 }]);
    await world.end();
  });
});

describe('the arguments of a call that was begun before', () => {
  const memory = ENGINE_STORES[0] as (typeof ENGINE_STORES)[number];

  type Scene = ReturnType<typeof scene>;

  /** The process is killed inside the tool; another deployment goes on. */
  async function crashed(
    { deployed }: Scene,
    next: (deployed: Scene['deployed']) => AgentDefinition,
    more: ToolOptions = {},
  ) {
    const store = new MemoryRunStore();
    const entered = signal();
    const hanging = (): Promise<never> => {
      entered.resolve();
      return new Promise<never>(() => undefined);
    };
    const first = await mortalEngine(store, deployed(cents, more, hanging));
    const { id } = await first.runs.start({ agent: 'support', prompt: 'go' });
    await entered.promise;
    await first.crash();
    const second = await engineOver(store, next(deployed));
    return second.runs.result(id);
  }

  it.each(['idempotent', 'safe'] as const)('JRN-8: refused by now, a cut %s call needs a person', async (recovery) => {
    const pay = scene({ recovery });
    const { attention } = await crashed(pay, (deployed) => deployed(refusing));
    expect(attention).toMatchObject({
      reason: 'uncertain_outcome',
      detail: expect.stringMatching(/currency is required.*may have happened/),
    });
    expect(pay.ran).toHaveLength(1);
  });

  it.each(['idempotent', 'safe'] as const)(
    'JRN-8: read otherwise by now, a cut %s call has drifted',
    async (recovery) => {
      const pay = scene({ recovery });
      const { attention } = await crashed(pay, (deployed) => deployed(otherwise));
      expect(attention).toMatchObject({ reason: 'input_drift', detail: expect.stringContaining('may have happened') });
      expect(pay.ran).toHaveLength(1);
    },
  );

  it('JRN-8: a probe is not asked about arguments that it would read otherwise', async () => {
    for (const [next, reason] of [
      [refusing, 'uncertain_outcome'],
      [otherwise, 'input_drift'],
    ] as const) {
      let probed = 0;
      const probe = () => {
        probed++;
        return { result: 'did-not-happen' } as const;
      };
      const pay = scene({ recovery: 'probe', probe });
      expect((await crashed(pay, (deployed) => deployed(next))).attention).toMatchObject({ reason });
      expect([probed, pay.ran.length]).toEqual([0, 1]);
    }
  });

  it('JRN-8: a method that asked is not entered again with other arguments', async () => {
    for (const [next, reason] of [
      [refusing, 'uncertain_outcome'],
      [otherwise, 'input_drift'],
    ] as const) {
      const { deployed, ran } = scene();
      const asks = (_input: JsonObject, context: ToolContext) => context.ask({ id: 'a', text: 'Sure?' });
      const world = await World.over(memory);
      const first = await world.process(deployed(cents, {}, asks), { resumeAfterAnswers: 'manual' });
      const { id } = await first.runs.start({ agent: 'support', prompt: 'go' });
      await reaches(first, id, 'waiting');
      const [ask] = await asksOf(first, id, 1);
      await first.runs.respond(id, ask!.id, { action: 'accept', by: 'ann', answers: { a: 'yes' } });
      const second = await world.restart(deployed(next, {}, asks));
      await second.runs.resume(id);
      expect((await reaches(second, id, 'needs_attention')).attention).toMatchObject({
        reason,
        detail: expect.stringContaining('may have happened'),
      });
      expect(ran).toHaveLength(1);
      await world.end();
    }
  });

  it('JRN-5: a repetition that a guard refuses does not pass for a call that did nothing', async () => {
    for (const [recovery, expected] of [
      ['idempotent', 'needs_attention'],
      ['safe', 'completed'],
    ] as const) {
      const pay = scene({ recovery });
      const { status } = await crashed(pay, (deployed) => {
        const next = deployed(cents);
        next.tools[0]!.caller.call = () => Promise.reject(new ToolDeniedError('not at night'));
        return next;
      });
      expect([status, pay.ran.length]).toEqual([expected, 1]);
    }
  });

  it('JRN-5: nor one whose tool is gone', async () => {
    const pay = scene({ recovery: 'idempotent' });
    const { attention } = await crashed(pay, (deployed) => agent(deployed(cents).model, []));
    expect(attention).toMatchObject({ detail: expect.stringContaining('no longer registered') });
  });

  it('JRN-8: are not read twice by the process that has just read them', async () => {
    const { deployed, asked, ran } = scene();
    const world = await World.over(memory);
    const process = await world.process(deployed(cents));
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, id, 'completed');
    expect([asked.parse, ran]).toEqual([1, [{ cents: 700 }]]);
    await world.end();
  });
});
