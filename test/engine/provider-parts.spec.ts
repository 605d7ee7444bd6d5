import { afterEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../lib/contracts/json.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { ALL_ENGINE_STORES } from '../support/stores.js';

afterEach(stopEngines);

describe.each(ALL_ENGINE_STORES)('a reply on $name', ({ open }) => {
  it('MOD-9: what only its provider understands goes back byte for byte, in place, after a restart (B099)', async () => {
    const shared = await open();
    const signed: JsonObject = {
      signature: 'EqoB/+=\u{1F511}\u0000',
      z: 1,
      a: [{ y: 1, b: null }],
      'k\ud83d': '\udd11',
    };
    const ordered = JSON.parse('{"b":1,"a":{"z":1,"y":2},"__proto__":{"x":1}}') as JsonObject;
    const script = [
      {
        parts: [
          { type: 'reasoning' as const, text: 'first\ud83d', providerOptions: { acme: signed } },
          { type: 'reasoning' as const, text: '', providerOptions: { acme: { redactedData: 'xyz' } } },
          { type: 'opaque' as const, value: ordered },
        ],
        text: 'So.',
        calls: [{ name: 'gated', providerOptions: { acme: signed } }],
      },
      { text: 'done' },
    ];
    const gated = () => tool('gated', () => 'ok', { asks: () => ({}) });
    const first = await engineOver(shared.store, agent(scriptedModel(script), [gated()]));
    const run = await first.runs.startAndWait({ agent: 'support', prompt: 'go' });
    const told = (await first.runs.messages(run.id)).at(-1)!;
    await first.runs.respond(run.id, run.interactions[0]!.id, { decision: 'approve', by: 'ann' });
    await first.stop();

    const model = scriptedModel(script, { place: 'transcript' });
    const second = await engineOver(await shared.reopen(), agent(model, [gated()]));
    expect(await second.runs.result(run.id)).toMatchObject({ status: 'completed' });
    const sent = model.requests[0]!.messages.find(({ role }) => role === 'assistant')!;
    expect(JSON.stringify(sent)).toBe(JSON.stringify(told));
    const [reasoning, redacted, opaque, text, call] = sent.content as unknown as JsonObject[];
    expect(JSON.stringify(reasoning!.providerOptions)).toBe(JSON.stringify({ acme: signed }));
    expect([reasoning!.text, redacted, text]).toEqual([
      'first\ud83d',
      { type: 'reasoning', text: '', providerOptions: { acme: { redactedData: 'xyz' } } },
      { type: 'text', text: 'So.' },
    ]);
    expect(JSON.stringify(opaque!.value)).toBe(JSON.stringify(ordered));
    expect(JSON.stringify(call!.providerOptions)).toBe(JSON.stringify({ acme: signed }));
    await stopEngines();
    await shared.dispose();
  });
});
