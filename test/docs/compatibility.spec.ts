/** docs/guide/compatibility.md says what the manifest says. */
import { readFileSync } from 'node:fs';
import { CONTRACT_VERSION } from '../../lib/contracts/run.js';

const page = readFileSync('docs/guide/compatibility.md', 'utf8');
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  engines: { node: string };
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: boolean }>;
};
const rows = [...page.matchAll(/^\| (.+?) \| `(.+?)` \|/gm)].map(([, what = '', range = '']) => ({
  what,
  range: range.replaceAll('\\|', '|'),
}));
const rowOf = (name: string) => rows.find(({ what }) => what.includes(`\`${name}\``));

describe('The page about compatibility', () => {
  it('has the range of Node.js and of every peer, and says which peers are optional', () => {
    expect(rows.find(({ what }) => what === 'Node.js')?.range).toBe(manifest.engines.node);
    const peers = Object.keys(manifest.peerDependencies);
    expect(Object.fromEntries(peers.map((name) => [name, rowOf(name)?.range]))).toEqual(manifest.peerDependencies);
    const optional = peers.filter((name) => rowOf(name)?.what.includes('(optional)'));
    expect(optional.sort()).toEqual(Object.keys(manifest.peerDependenciesMeta).sort());
  });

  it('names the version of the journal that is written', () => {
    expect(page).toContain(`(\`contractVersion\`, now ${CONTRACT_VERSION})`);
  });
});
