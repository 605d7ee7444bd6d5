import { execFileSync } from 'node:child_process';

it('the published tarball holds both builds and its papers, nothing else', () => {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(output) as [{ files: { path: string }[] }];
  const paths = packed.files.map((file) => file.path);
  const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'dist/cjs/package.json'];
  expect(paths).toEqual(expect.arrayContaining(papers));
  const others = paths.filter(
    (path) => !papers.includes(path) && !/^dist\/(?:esm|cjs)\/.+(?:\.js|\.d\.ts)$/.test(path),
  );
  expect(others).toEqual([]);
});
