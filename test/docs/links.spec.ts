/** A reader who follows a link arrives. */
import { existsSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { anchorsOf, linksOf, readPage, readPages, type Link } from './doc-page.js';

const pages = readPages();
/** What the package does not carry is linked where everybody finds it. */
const REPOSITORY = 'https://github.com/nestjs-agent-runs/nestjs-agent-runs/blob/main/';

/** Null when the link leads somewhere. */
function problemOf({ page, line, target }: Link): string | null {
  const own = target.startsWith(REPOSITORY) ? target.slice(REPOSITORY.length) : null;
  if (own === null && /^[a-z]+:/.test(target)) return null;
  const [path = '', anchor] = (own ?? target).split('#');
  const file = own !== null ? path : path === '' ? page : posix.join(posix.dirname(page), path);
  if (!existsSync(file)) return `${page}:${line}: ${target} is not there`;
  if (anchor === undefined || statSync(file).isDirectory()) return null;
  return anchorsOf(readPage(file)).includes(anchor) ? null : `${page}:${line}: ${file} has no heading #${anchor}`;
}

describe('The links of README and docs/', () => {
  it('lead to files and headings that are there', () => {
    expect(pages.flatMap(linksOf).flatMap((link) => problemOf(link) ?? [])).toEqual([]);
  });

  it('would be found broken', () => {
    const link = (target: string): Link => ({ page: 'docs/guide/http.md', line: 1, target });
    expect(problemOf(link('../errors.md#session_busy'))).toBeNull();
    expect(problemOf(link('../errors.md#no_such_code'))).toContain('has no heading');
    expect(problemOf(link('nowhere.md'))).toContain('is not there');
  });

  it('reach every page of the guide from the README', () => {
    const readme = readPage('README.md');
    const linked = new Set(linksOf(readme).map(({ target }) => target));
    const guide = pages.map(({ path }) => path).filter((path) => path.startsWith('docs/guide/'));
    expect(guide.filter((path) => !linked.has(path))).toEqual([]);
  });

  it('lead from the start of a run to its end by way of at most 40 files', () => {
    const page = readPage('docs/architecture.md');
    const walk = linksOf(page).filter(({ target }) => target.startsWith('../lib/'));
    expect(walk.map(({ target }) => target)).toEqual(
      expect.arrayContaining(['../lib/engine/run-service.ts', '../lib/engine/settle-run.ts']),
    );
    expect(new Set(walk.map(({ target }) => target)).size).toBeLessThanOrEqual(40);
  });
});
