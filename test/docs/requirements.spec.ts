/** docs/requirements.md: every id that is cited is there, and each test it names cites the id. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';

const ID = /\b(?:RUN|SUB|JRN|OWN|MOD|STO|PPL|STR|BUD|EVT|CTX|OPS|CFG|SIM)-[A-Z]?\d+[a-z]?\b/g;

const rows = [
  ...readFileSync('docs/requirements.md', 'utf8').matchAll(/^\| ([A-Z]+-[A-Z]?\d+[a-z]?) \| (.+) \| (.+) \|$/gm),
].map(([, id = '', text = '', tests = '']) => ({
  id,
  text,
  tests: [...tests.matchAll(/\]\(([^)]+)\)/g)].map(([, target = '']) => posix.join('docs', target)),
}));

/** Every place of the repository that cites a requirement. */
function citedIds(): string[] {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'lib', 'test', 'docs', 'sample-app'], {
    encoding: 'utf8',
  });
  const sources = files
    .split('\n')
    .filter((file) => /\.(?:ts|mjs|md)$/.test(file) && file !== 'docs/requirements.md')
    .map((file) => readFileSync(file, 'utf8'));
  return [...new Set(sources.flatMap((source) => source.match(ID) ?? []))].sort();
}

describe('docs/requirements.md', () => {
  it('has a sentence for every id that code, tests and docs cite, each id once', () => {
    const ids = rows.map(({ id }) => id);
    expect(citedIds().filter((id) => !ids.includes(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(rows.filter(({ text }) => !/^\S.{20,}\.$/.test(text))).toEqual([]);
  });

  it.each(rows)('$id is tested where the page says', ({ id, tests }) => {
    expect(tests.length).toBeGreaterThan(0);
    const word = new RegExp(`\\b${id}\\b`);
    expect(tests.filter((file) => !word.test(readFileSync(file, 'utf8')))).toEqual([]);
  });
});
