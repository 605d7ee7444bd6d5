import { definitionHash, type HashedAgent } from '../../lib/discovery/build-agents.js';
import { compareVersions, isDottedVersion } from '../../lib/discovery/dotted-version.js';
import { Sha256Digester } from '../../lib/system/system-ports.js';

const digester = new Sha256Digester();
const refund = {
  name: 'refund',
  version: '1',
  description: 'Refunds.',
  inputSchema: { type: 'object', properties: { a: {}, b: { required: ['y', 'x'] } }, required: ['b', 'a'] },
  outputSchema: null,
  recovery: 'manual' as const,
  approval: 'none' as const,
};
const lookup = { ...refund, name: 'lookup', recovery: 'safe' as const };
const base: HashedAgent = { instructions: 'Help.', modelName: 'default', tools: [refund, lookup] };
const hash = (change: Partial<HashedAgent> = {}) => definitionHash({ ...base, ...change }, digester);
const withRefund = (change: object) => hash({ tools: [{ ...refund, ...change }, lookup] });

describe('The definition hash (JRN-7, decision the-definition-hash)', () => {
  it('JRN-7: changes with everything that changes behaviour', () => {
    const hashes = [
      hash(),
      hash({ instructions: 'Help!' }),
      hash({ modelName: 'other' }),
      hash({ tools: [refund] }),
      withRefund({ name: 'refund2' }),
      withRefund({ version: '2' }),
      withRefund({ description: 'Refunds money.' }),
      withRefund({ recovery: 'safe' }),
      withRefund({ approval: 'rule' }),
      withRefund({ inputSchema: { type: 'object' } }),
      withRefund({ outputSchema: { type: 'string' } }),
      hash({ instructions: () => 'Help.' }),
      hash({ modelSettings: { temperature: 0 } }),
      hash({ modelSettings: { temperature: 1 } }),
      hash({ modelSettings: { providerOptions: { openai: { reasoningEffort: 'low' } } } }),
      hash({ toolChoice: 'required' }),
      hash({ toolChoice: { tool: 'refund' } }),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it('JRN-7: does not change with limits, the order of tools, of keys, or of required names', () => {
    const reordered = {
      ...refund,
      inputSchema: { required: ['a', 'b'], properties: { b: { required: ['x', 'y'] }, a: {} }, type: 'object' },
      timeoutMs: 5,
    };
    expect(hash({ tools: [lookup, reordered], maxTurns: 3 } as never)).toBe(hash());
    expect(hash({ modelSettings: { maxOutputTokens: 10 } })).toBe(hash());
  });

  it('JRN-7: says of a function of instructions that it is one, whatever it does: what it returned is in each journal', () => {
    expect(hash({ instructions: () => 'Help.' })).toBe(hash({ instructions: () => 'Help!' }));
  });

  it('JRN-7: is the same on every machine', () => {
    expect(hash()).toBe('be09bcf9a79b28ea26b05ac77f8cdc177a7e3b1ce54b4b162a8a2378be0a36d0');
  });
});

describe('Versions', () => {
  it('are dotted integers, compared as numbers', () => {
    expect(['1', '10', '2.0.1', '0'].filter(isDottedVersion)).toHaveLength(4);
    expect(['', 'v1', '1.', '.1', '01', '1.01', '-1', '1e3', '1-beta', '٣', 1, null].filter(isDottedVersion)).toEqual(
      [],
    );
    expect(['9', '10', '1.10', '1.9', '1.9.0.1'].sort(compareVersions)).toEqual(['1.9', '1.9.0.1', '1.10', '9', '10']);
    expect(compareVersions('1', '1.0')).toBe(0);
  });
});
