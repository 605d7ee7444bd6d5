/** docs/where-is.md: each file is there and exports what the page says it does. */
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { readPage, tableUnder } from './doc-page.js';

const rows = tableUnder(readPage('docs/where-is.md'), 'Where is …?').map(
  ([question = '', files = '', symbol = '']) => ({
    question,
    files: [...files.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, shown = '', target = '']) => ({
      shown,
      path: posix.join('docs', target),
    })),
    symbol: symbol.replaceAll('`', ''),
  }),
);

function exportsName(file: string, name: string): boolean {
  const source = readFileSync(file, 'utf8');
  return (
    new RegExp(
      `^export (?:declare )?(?:abstract )?(?:async )?(?:class|function\\*?|const|interface|type) ${name}\\b`,
      'm',
    ).test(source) || new RegExp(`^export (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\}`, 'm').test(source)
  );
}

describe('docs/where-is.md', () => {
  it('has a question in every row, and each question once', () => {
    expect(rows.length).toBeGreaterThan(35);
    expect(rows.filter(({ question }) => !question.endsWith('?'))).toEqual([]);
    expect(new Set(rows.map(({ question }) => question)).size).toBe(rows.length);
  });

  it.each(rows)('$question', ({ files, symbol }) => {
    expect(files.length).toBeGreaterThan(0);
    for (const { shown, path } of files) {
      expect([path, path === shown, existsSync(path)]).toEqual([path, true, true]);
    }
    const [first] = files;
    if (symbol !== '')
      expect([first?.path, symbol, exportsName(first?.path ?? '', symbol)]).toEqual([first?.path, symbol, true]);
  });

  it('would notice a name that its file does not export', () => {
    expect(exportsName('lib/index.ts', 'RunService')).toBe(true);
    expect(exportsName('lib/index.ts', 'RunServices')).toBe(false);
    expect(exportsName('lib/engine/next-action.ts', 'openCalls')).toBe(false);
  });
});
