/** What an entry point exports is documented where an editor shows it. */
import { readdirSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';

const entryPoints = readdirSync('lib').filter((file) => file.endsWith('.ts'));
const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile.bind(ts.sys)) as { config: object };
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, '.');
const program = ts.createProgram(
  entryPoints.map((file) => posix.join('lib', file)),
  { ...options, incremental: false, tsBuildInfoFile: undefined, types: ['node'] },
);
const checker = program.getTypeChecker();

/** Every symbol that an entry point exports, each once. */
const exported = new Set(
  entryPoints.flatMap((file) => {
    const entryPoint = checker.getSymbolAtLocation(program.getSourceFile(posix.join('lib', file)) as ts.SourceFile);
    return checker
      .getExportsOfModule(entryPoint as ts.Symbol)
      .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol));
  }),
);

const isDocumented = (symbol: ts.Symbol): boolean =>
  symbol.getDocumentationComment(checker).length > 0 || symbol.getJsDocTags(checker).length > 0;

/** Members of the classes of lib/ that a class extends. */
function inheritedBy({ heritageClauses }: ts.ClassDeclaration): ts.ClassElement[] {
  return (heritageClauses ?? []).flatMap(({ token, types }) => {
    if (token !== ts.SyntaxKind.ExtendsKeyword) return [];
    const bases = types.flatMap(
      ({ expression }) => checker.getTypeAtLocation(expression).getSymbol()?.declarations ?? [],
    );
    return bases.flatMap((base) =>
      ts.isClassDeclaration(base) && !base.getSourceFile().isDeclarationFile
        ? [...base.members, ...inheritedBy(base)]
        : [],
    );
  });
}

/** Members that an editor offers, with a name that does not say all: a literal says what it is. */
function membersOf(symbol: ts.Symbol): ts.Symbol[] {
  const bodies = (symbol.declarations ?? []).flatMap((declaration): readonly ts.Declaration[] => {
    if (ts.isInterfaceDeclaration(declaration)) return declaration.members;
    if (ts.isClassDeclaration(declaration)) return [...declaration.members, ...inheritedBy(declaration)];
    const isObject = ts.isTypeAliasDeclaration(declaration) && ts.isTypeLiteralNode(declaration.type);
    return isObject ? declaration.type.members : [];
  });
  return bodies.flatMap((member) => {
    const name = ts.getNameOfDeclaration(member);
    const isHidden = ts.getCombinedModifierFlags(member) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected);
    const found = name && checker.getSymbolAtLocation(name);
    if (!found || isHidden || ts.isComputedPropertyName(name)) return [];
    return checker.getTypeOfSymbol(found).isLiteral() ? [] : [found];
  });
}

it('every export of an entry point has a doc comment', () => {
  expect(exported.size).toBeGreaterThan(250);
  expect([...exported].filter((symbol) => !isDocumented(symbol)).map(({ name }) => name)).toEqual([]);
});

it('so has every member of an exported interface or class', () => {
  const members = [...exported].flatMap((symbol) =>
    membersOf(symbol).map((member) => ({ owner: symbol.name, member })),
  );
  expect(members.length).toBeGreaterThan(500);
  const silent = members.filter(({ member }) => !isDocumented(member));
  expect(silent.map(({ owner, member }) => `${owner}.${member.name}`)).toEqual([]);
});
