import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { entryPoints } from './package-manifest.js';

const typings = readdirSync('dist/esm')
  .filter((file) => file.endsWith('.d.ts'))
  .map((file) => ({ file: join('dist/esm', file), text: readFileSync(join('dist/esm', file), 'utf8') }));

/** Lines of the published typings that match, each with its file. */
function linesWith(pattern: RegExp): string[] {
  return typings.flatMap(({ file, text }) =>
    text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );
}

it('the published typings cite no page that a reader of the package does not have', () => {
  expect(typings.length).toBeGreaterThan(entryPoints.length);
  const requirement = /\b(?!UTF|SHA|ISO)[A-Z]{3}-\d/;
  const page = /\b(?:decisions? \d|spec \d|B-?\d{2,3}\b)/i;
  expect([...linesWith(requirement), ...linesWith(page)]).toEqual([]);
});

it('the published typings describe no class of the inside, but for the abstract base of one that is exported', () => {
  const program = ts.createProgram(
    typings.map(({ file }) => file),
    { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, types: [] },
  );
  const checker = program.getTypeChecker();
  const sourceOf = (file: string) => program.getSourceFile(file) as ts.SourceFile;
  const exported = new Set(
    entryPoints.flatMap(({ esm }) =>
      checker
        .getExportsOfModule(checker.getSymbolAtLocation(sourceOf(esm.types)) as ts.Symbol)
        .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)),
    ),
  );
  const classes = typings.flatMap(({ file }) => sourceOf(file).statements.filter(ts.isClassDeclaration));
  expect(classes.length).toBeGreaterThan(20);
  const inner = classes
    .filter(({ modifiers }) => !modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword))
    .flatMap(({ name }) => (name && !exported.has(checker.getSymbolAtLocation(name) as ts.Symbol) ? [name.text] : []));
  expect(inner).toEqual([]);
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
