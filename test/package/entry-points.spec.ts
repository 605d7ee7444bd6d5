import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, resolve } from 'node:path';
import ts from 'typescript';
import { evaluate } from './node-child.js';
import { entryPoints, manifest, type EntryPoint } from './package-manifest.js';

/** The optional peers that an entry point needs by its nature; importing it must load no other one. */
const optionalPeersOf: Record<string, string[]> = {
  typeorm: ['typeorm', '@nestjs/typeorm'],
  http: ['@nestjs/swagger'],
};

type Loaded = Record<string, string[] | string>;

/** What each specifier gives when loaded in a process of its own: the names with a value, or the error. */
function load(format: 'esm' | 'cjs', specifiers: string[]): Loaded {
  return evaluate<Loaded>(
    format,
    `(async () => {
      const loaded = {};
      for (const specifier of ${JSON.stringify(specifiers)}) {
        try {
          const entryPoint = ${format === 'esm' ? 'await import(specifier)' : 'require(specifier)'};
          loaded[specifier] = Object.keys(entryPoint).filter((key) => entryPoint[key] !== undefined).sort();
        } catch (error) { loaded[specifier] = error.code ?? String(error); }
      }
      process.stdout.write(JSON.stringify(loaded));
    })();`,
  );
}

/** The names a declaration file exports whose target is a class, function, enum or constant, even behind `export type`. */
function declaredValues(program: ts.Program, declarations: string): string[] {
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(declarations);
  const symbol = file && checker.getSymbolAtLocation(file);
  if (!symbol) throw new Error(`${declarations} is no module.`);
  return checker.getExportsOfModule(symbol).flatMap((exported) => {
    const target = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    return target.flags & ts.SymbolFlags.Value ? [exported.name] : [];
  });
}

/** Every package that loading `entry` loads (for declarations: needs), following our own files. */
function packagesBehind(entry: string): string[] {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    const imports = /^\s*(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]/gm;
    for (const [, specifier = ''] of text.matchAll(imports)) {
      if (specifier.startsWith('.')) {
        const target = resolve(dirname(file), specifier);
        visit(file.endsWith('.d.ts') ? target.replace(/\.js$/, '.d.ts') : target);
      } else if (!isBuiltin(specifier)) {
        packages.add(specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'));
      }
    }
  };
  visit(resolve(entry));
  return [...packages].sort();
}

/** The packages that requiring the root loads in a process that has loaded Nest. */
function requiredBesideNest(): string[] {
  const files = evaluate<string[]>(
    'cjs',
    `for (const name of ['reflect-metadata', '@nestjs/common', '@nestjs/core']) require(name);
    const before = new Set(Object.keys(require.cache));
    require(${JSON.stringify(manifest.name)});
    process.stdout.write(JSON.stringify(Object.keys(require.cache).filter((file) => !before.has(file))));`,
  );
  const names = files.flatMap((file) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []);
  return [...new Set(names)].filter((name) => !name.startsWith('@nestjs/')).sort();
}

const isOptional = (name: string) => manifest.peerDependenciesMeta[name]?.optional === true;
const isDeclared = (name: string) => name in manifest.dependencies || name in manifest.peerDependencies;

let imported: Loaded;
let required: Loaded;
let requiredEsm: Loaded;
let program: ts.Program;

beforeAll(() => {
  const specifiers = entryPoints.map((entryPoint) => entryPoint.specifier);
  imported = load('esm', specifiers);
  required = load('cjs', specifiers);
  requiredEsm = load(
    'cjs',
    entryPoints.map((entryPoint) => resolve(entryPoint.esm.default)),
  );
  program = ts.createProgram(
    entryPoints.map((entryPoint) => resolve(entryPoint.esm.types)),
    {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      skipLibCheck: true,
      types: [],
    },
  );
}, 60_000);

it('CFG-11: every entry point of lib/ is exported, and nothing else is', () => {
  const files = readdirSync('lib').filter((file) => file.endsWith('.ts'));
  expect(entryPoints.map((entryPoint) => `${entryPoint.name}.ts`).sort()).toEqual(files.sort());
});

describe.each(entryPoints)('$specifier', (entryPoint: EntryPoint) => {
  it('has the files its export conditions name', () => {
    const targets = [entryPoint.esm.types, entryPoint.esm.default, entryPoint.cjs.types, entryPoint.cjs.default];
    expect(targets.filter((target) => !existsSync(target))).toEqual([]);
  });

  it('gives the same names to import and to require, each of them a value', () => {
    expect(imported[entryPoint.specifier]).toEqual(expect.arrayContaining([expect.any(String)]));
    expect(required[entryPoint.specifier]).toEqual(imported[entryPoint.specifier]);
  });

  it('exports as values all classes, functions and constants that its types name', () => {
    const values = declaredValues(program, resolve(entryPoint.esm.types));
    expect(values.filter((name) => !imported[entryPoint.specifier]?.includes(name))).toEqual([]);
  });

  it('can be required in its ESM form, which top-level await would forbid', () => {
    expect(requiredEsm[resolve(entryPoint.esm.default)]).toEqual(imported[entryPoint.specifier]);
  });

  it('loads no package that is undeclared, and no optional peer that is not its own', () => {
    const own = optionalPeersOf[entryPoint.name] ?? [];
    const behind = [...packagesBehind(entryPoint.esm.default), ...packagesBehind(entryPoint.esm.types)];
    expect(behind.filter((name) => !isDeclared(name) || (isOptional(name) && !own.includes(name)))).toEqual([]);
  });
});

it('the root loads no package beside Nest that boot can load when it is needed', () => {
  const nest = /^(?:@nestjs\/(?:common|core)|reflect-metadata|rxjs)$/;
  const root = entryPoints.find(({ name }) => name === 'index') as EntryPoint;
  expect(packagesBehind(root.esm.default).filter((name) => !nest.test(name))).toEqual([]);
  expect(requiredBesideNest()).toEqual([]);
});

it.each(['esm', 'cjs'] as const)('no path behind the entry points can be loaded (%s)', (format) => {
  const paths = ['dist/esm/index.js', 'dist/cjs/index.js', 'lib/index.ts', 'index.js', 'contracts/run.js'];
  const specifiers = paths.map((path) => `${manifest.name}/${path}`);
  expect(load(format, specifiers)).toEqual(
    Object.fromEntries(specifiers.map((specifier) => [specifier, 'ERR_PACKAGE_PATH_NOT_EXPORTED'])),
  );
});
