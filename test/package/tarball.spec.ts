import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { linksOf, readPage } from '../docs/doc-page.js';

function packedFiles(cwd = '.'): string[] {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(output) as [{ files: { path: string }[] }];
  return packed.files.map((file) => file.path);
}

it('the published tarball holds both builds and its papers, nothing else', () => {
  const paths = packedFiles();
  const papers = ['docs/errors.md', 'CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'dist/cjs/package.json'];
  expect(paths).toEqual(expect.arrayContaining(papers));
  const others = paths.filter(
    (path) =>
      !papers.includes(path) &&
      !/^dist\/(?:esm|cjs)\/.+(?:\.js|\.d\.ts)$/.test(path) &&
      !/^docs\/guide\/[a-z-]+\.md$/.test(path),
  );
  expect(others).toEqual([]);
});

it('STO-9: the store contract is a package of its own, and needs nothing of ours at run time', () => {
  const paths = packedFiles('packages/contract');
  expect(paths).toEqual(expect.arrayContaining(['README.md', 'LICENSE', 'dist/esm/index.js', 'dist/cjs/package.json']));
  expect(packedFiles().filter((path) => path.includes('contract/') && path.includes('cases'))).toEqual([]);
  const imports = paths
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
  const paths = packedFiles();
  const links = paths.filter((path) => path.endsWith('.md')).flatMap((path) => linksOf(readPage(path)));
  expect(links.length).toBeGreaterThan(50);
  const missing = links.filter(({ page, target }) => {
    const [path = ''] = target.split('#');
    return path !== '' && !/^[a-z]+:/.test(path) && !paths.includes(posix.join(posix.dirname(page), path));
  });
  expect(missing).toEqual([]);
});
