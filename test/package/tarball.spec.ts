import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { linksOf, readPage } from '../docs/doc-page.js';
import { entryPoints } from './package-manifest.js';

interface Packed {
  paths: string[];
  unpackedBytes: number;
}

function pack(cwd: string): Packed {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(output) as [{ files: { path: string }[]; unpackedSize: number }];
  return { paths: packed.files.map((file) => file.path), unpackedBytes: packed.unpackedSize };
}

let paths: string[];
let unpackedBytes: number;
let contractPaths: string[];

beforeAll(() => {
  ({ paths, unpackedBytes } = pack('.'));
  ({ paths: contractPaths } = pack('packages/contract'));
}, 60_000);

it('the published tarball holds both builds and its papers, nothing else', () => {
  const papers = ['docs/errors.md', 'CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'dist/cjs/package.json'];
  expect(paths).toEqual(expect.arrayContaining(papers));
  const others = paths.filter(
    (path) =>
      !papers.includes(path) &&
      !/^dist\/(?:esm|cjs)\/.+\.js$/.test(path) &&
      !/^dist\/(?:esm|cjs)\/[^/]+\.d\.ts$/.test(path) &&
      !/^docs\/guide\/[a-z-]+\.md$/.test(path),
  );
  expect(others).toEqual([]);
});

it('the published tarball has at most 700 files and 3 MB', () => {
  expect(paths.length).toBeLessThanOrEqual(700);
  expect(unpackedBytes).toBeLessThanOrEqual(3_000_000);
});

it('the declarations are those of the entry points and what these share', () => {
  const names = entryPoints.map(({ name }) => name).sort();
  for (const format of ['esm', 'cjs']) {
    const own = paths
      .filter((path) => path.startsWith(`dist/${format}/`) && path.endsWith('.d.ts'))
      .map((path) => posix.basename(path, '.d.ts'))
      .filter((name) => !name.startsWith('shared-'));
    expect(own.sort()).toEqual(names);
  }
  const ofContract = contractPaths.filter((path) => path.endsWith('.d.ts'));
  expect(ofContract.sort()).toEqual(['dist/cjs/index.d.ts', 'dist/esm/index.d.ts']);
});

it('STO-9: the store contract is a package of its own, and needs nothing of ours at run time', () => {
  expect(contractPaths).toEqual(
    expect.arrayContaining(['README.md', 'LICENSE', 'dist/esm/index.js', 'dist/cjs/package.json']),
  );
  expect(paths.filter((path) => path.includes('contract/') && path.includes('cases'))).toEqual([]);
  const imports = contractPaths
    .filter((path) => path.endsWith('.js'))
    .flatMap(
      (path) =>
        readFileSync(posix.join('packages/contract', path), 'utf8').match(/(?:from|require\()\s*['"][^.'"][^'"]*/g) ??
        [],
    )
    .filter((text) => !text.includes('node:'));
  expect(imports).toEqual([]);
});

it('a reader of the tarball arrives wherever its pages link to', () => {
  const links = paths.filter((path) => path.endsWith('.md')).flatMap((path) => linksOf(readPage(path)));
  expect(links.length).toBeGreaterThan(50);
  const missing = links.filter(({ page, target }) => {
    const [path = ''] = target.split('#');
    return path !== '' && !/^[a-z]+:/.test(path) && !paths.includes(posix.join(posix.dirname(page), path));
  });
  expect(missing).toEqual([]);
});
