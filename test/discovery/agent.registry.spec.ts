import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import { AgentRegistry } from '../../lib/discovery/agent.registry.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent } from '../support/engine-harness.js';

const registered = (definition: Partial<AgentDefinition>) => ({
  classRef: class Anonymous {},
  definition: agent(scriptedModel(), [], definition),
});

describe('The registry of agents', () => {
  it('OWN-6: offers exactly what it keeps, any hash where changes are accepted', () => {
    const registry = new AgentRegistry();
    expect([registry.all(), registry.offers(), registry.find('support')]).toEqual([[], [], undefined]);
    registry.keep([
      registered({ version: '1', hash: 'h1' }),
      registered({ version: '2', hash: 'h2', definitionChange: 'accept' }),
    ]);
    expect(registry.offers()).toEqual([
      { agent: 'support', version: '1', hash: 'h1' },
      { agent: 'support', version: '2', hash: null },
    ]);
    expect(registry.find('support')?.version).toBe('2');
    expect(registry.find('support', '1')?.hash).toBe('h1');
    expect(registry.find('support', '3')).toBeUndefined();
    expect(registry.find('toString')).toBeUndefined();
  });

  it('B100: what it gives cannot be changed', () => {
    const registry = new AgentRegistry();
    registry.keep([registered({})]);
    expect(() => Object.assign(registry.all()[0] as object, { hash: 'x' })).toThrow(TypeError);
    expect(() => (registry.all() as unknown[]).push(1)).toThrow(TypeError);
  });
});
