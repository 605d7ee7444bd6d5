/** docs/decisions/: what code and tests cite is there. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const pages = readdirSync('docs/decisions').map((file) => file.replace(/\.md$/, ''));
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'lib', 'packages', 'test', 'bench'], {
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.(?:ts|mjs)$/.test(file));
const cited = files.flatMap((file) =>
  [...readFileSync(file, 'utf8').matchAll(/\bdecision ([a-z]+(?:-[a-z]+){2,}|\d+)\b/gi)].map(([, slug = '']) => slug),
);

describe('docs/decisions', () => {
  it('has a page for every decision that code and tests cite', () => {
    expect(cited.length).toBeGreaterThan(50);
    expect([...new Set(cited)].filter((slug) => !pages.includes(slug))).toEqual([]);
  });

  it('names its pages by what was decided', () => {
    expect(pages.filter((page) => !/^[a-z]+(?:-[a-z]+)+$/.test(page))).toEqual([]);
  });
});
