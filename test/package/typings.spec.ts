import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const typings = readdirSync('dist', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.d.ts'))
  .map((file) => ({ file, text: readFileSync(join('dist', file), 'utf8') }));

/** Lines of the published typings that match, each with its file. */
function linesWith(pattern: RegExp): string[] {
  return typings.flatMap(({ file, text }) =>
    text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );
}

it('the published typings cite no page that a reader of the package does not have', () => {
  expect(typings.length).toBeGreaterThan(100);
  const requirement = /\b(?!UTF|SHA|ISO)[A-Z]{3}-\d/;
  const page = /\b(?:decisions? \d|spec \d|B-?\d{2,3}\b)/i;
  expect([...linesWith(requirement), ...linesWith(page)]).toEqual([]);
});

it('the published typings say `any` nowhere', () => {
  const found: string[] = [];
  for (const { file, text } of typings.filter(({ text }) => /\bany\b/.test(text))) {
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
    const visit = (node: ts.Node): void => {
      if (node.kind === ts.SyntaxKind.AnyKeyword) {
        const { line } = source.getLineAndCharacterOfPosition(node.pos);
        found.push(`${file}:${line + 1}: ${text.split('\n')[line]?.trim()}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  expect(found).toEqual([]);
});
