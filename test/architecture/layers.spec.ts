import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, posix } from 'node:path';
import ts from 'typescript';

interface Layer {
  layers: string[];
  packages: string[];
}

const table = JSON.parse(readFileSync('test/architecture/layers.json', 'utf8')) as {
  layers: Record<string, Layer>;
  roles: string[];
  catchAlls: string[];
};
const files = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'))
  .sort();
const read = (file: string) => readFileSync(`lib/${file}`, 'utf8');

const layerOf = (file: string) =>
  !file.includes('/')
    ? 'entryPoint'
    : (Object.keys(table.layers).find((layer) => file.startsWith(`${layer}/`)) ?? 'no known layer');
const importLine = /^\s*(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;
const importsOf = (file: string) => [...read(file).matchAll(importLine)].map((match) => match[1] ?? match[2] ?? '');
const packageMatches = (pattern: string, name: string) =>
  pattern === '*' || name === pattern || name.startsWith(pattern.endsWith('*') ? pattern.slice(0, -1) : `${pattern}/`);

function isAllowed(file: string, specifier: string): boolean {
  const from = layerOf(file);
  const layer = from === 'entryPoint' ? { layers: Object.keys(table.layers), packages: [] } : table.layers[from];
  if (!layer) return false;
  if (specifier.startsWith('.')) {
    const target = layerOf(posix.join(dirname(file), specifier));
    return layer.layers.includes(target) || (target === from && from !== 'entryPoint');
  }
  const name = isBuiltin(specifier) ? `node:${specifier.replace(/^node:/, '')}` : specifier;
  return layer.packages.some((pattern) => packageMatches(pattern, name));
}

/** The files whose values a file imports; what is only a type is gone at run time. */
function valuesFrom(file: string): string[] {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest);
  return source.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return [];
    const { moduleSpecifier } = statement;
    if (!moduleSpecifier || !ts.isStringLiteral(moduleSpecifier) || !moduleSpecifier.text.startsWith('.')) return [];
    const clause = ts.isImportDeclaration(statement) ? statement.importClause : undefined;
    const names = clause ? clause.namedBindings : (statement as ts.ExportDeclaration).exportClause;
    const areTypes =
      clause?.name === undefined &&
      names !== undefined &&
      (ts.isNamedImports(names) || ts.isNamedExports(names)) &&
      names.elements.every(({ isTypeOnly }) => isTypeOnly);
    const isErased = areTypes || (clause ?? (statement as ts.ExportDeclaration)).isTypeOnly;
    return isErased ? [] : [posix.join(dirname(file), moduleSpecifier.text).replace(/\.js$/, '.ts')];
  });
}

/** Each cycle that is met on a walk through the imports, as the files on it. */
function cyclesOf(importsOfFile: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const path: string[] = [];
  const cycles: string[] = [];
  const visit = (file: string): void => {
    const at = path.indexOf(file);
    if (at >= 0) cycles.push([...path.slice(at), file].join(' -> '));
    if (at >= 0 || done.has(file)) return;
    path.push(file);
    for (const next of importsOfFile.get(file) ?? []) visit(next);
    path.pop();
    done.add(file);
  };
  for (const file of importsOfFile.keys()) visit(file);
  return cycles;
}

describe('The layers of lib/', () => {
  it('stand in the table of test/architecture/layers.json', () => {
    expect(files.filter((file) => layerOf(file) === 'no known layer')).toEqual([]);
  });

  it('import down, never up or sideways, and only the packages their layer allows', () => {
    const offences = files.flatMap((file) =>
      importsOf(file)
        .filter((specifier) => !isAllowed(file, specifier))
        .map((specifier) => `lib/${file} (${layerOf(file)}) may not import ${specifier}`),
    );
    expect(offences).toEqual([]);
  });

  it('import nothing that leads back to them', () => {
    expect(cyclesOf(new Map(files.map((file) => [file, valuesFrom(file)])))).toEqual([]);
    const imports = { 'a.ts': ['b.ts'], 'b.ts': ['c.ts', 'd.ts'], 'c.ts': ['b.ts'], 'd.ts': [] };
    expect(cyclesOf(new Map(Object.entries(imports)))).toEqual(['b.ts -> c.ts -> b.ts']);
  });

  it('would refuse what the table forbids', () => {
    const engine = 'engine/agent-loop.ts';
    expect(isAllowed(engine, '../contracts/run.js')).toBe(true);
    for (const forbidden of ['typeorm', 'node:fs', 'fs', '../stores/memory/memory-run.store.js', '../index.js']) {
      expect([forbidden, isAllowed(engine, forbidden)]).toEqual([forbidden, false]);
    }
    expect(isAllowed('stores/typeorm/dialect.ts', '../memory/memory-run.store.js')).toBe(false);
    expect(isAllowed('stores/typeorm/dialect.ts', 'typeorm')).toBe(true);
    expect(isAllowed('http/run.controller.ts', '../module/agent-runs.module.js')).toBe(true);
    expect(isAllowed('typeorm.ts', './index.js')).toBe(false);
    expect(isAllowed('catch-all file/thing.ts', '../contracts/run.js')).toBe(false);
  });

  it('have entry points that spell their exports by hand, and no inner index.ts', () => {
    const offences = files.filter((file) => /^\s*export\s*\*/m.test(read(file)) || /\/index\.ts$/.test(file));
    expect(offences).toEqual([]);
  });
});

describe('The files of lib/', () => {
  it('are named <subject>.<role>.ts in kebab-case with a known role', () => {
    const roles = new Set(table.roles);
    const offences = files.filter((file) => {
      const [, subject, role] = /^([a-z0-9]+(?:-[a-z0-9]+)*)(?:\.([a-z-]+))?\.ts$/.exec(posix.basename(file)) ?? [];
      return subject === undefined || (role !== undefined && !roles.has(role));
    });
    expect(offences).toEqual([]);
  });

  it('and their folders are never a catch-all file for anything', () => {
    const catchAlls = new Set(table.catchAlls);
    const offences = files.filter((file) => file.split('/').some((part) => catchAlls.has(part.replace(/\..*$/, ''))));
    expect(offences).toEqual([]);
  });

  it('have their comments on what these describe, never above the imports or above another comment', () => {
    const offences = files.filter(
      (file) =>
        file.includes('/') && (/^\/\*\*[\s\S]*?\*\/\s+import /.test(read(file)) || /\*\/\n\/\*\*/.test(read(file))),
    );
    expect(offences).toEqual([]);
  });

  it('hold no more than 300 lines of code', () => {
    const codeLines = (file: string) =>
      read(file)
        .replaceAll(/\/\*[\s\S]*?\*\//g, '')
        .split('\n')
        .filter((line) => !/^\s*(?:\/\/.*)?$/.test(line)).length;
    expect(files.map((file) => [file, codeLines(file)]).filter(([, lines]) => (lines as number) > 300)).toEqual([]);
  });
});
