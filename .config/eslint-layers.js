// The lint rules of this project: the layers of lib/ (docs/architecture.md; the table is test/architecture/layers.json), and the one writer of a run's status.
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const lib = fileURLToPath(new URL('../lib/', import.meta.url));
const table = JSON.parse(readFileSync(new URL('../test/architecture/layers.json', import.meta.url), 'utf8'));
const names = Object.keys(table.layers);

/** The layer a file of lib/ stands in; a file directly under lib/ is an entry point. */
function layerOf(file) {
  const inside = path.relative(lib, file).split(path.sep).join('/');
  if (inside.startsWith('../')) return 'outside';
  if (!inside.includes('/')) return 'entryPoint';
  return names.find((name) => inside.startsWith(`${name}/`)) ?? 'unknown';
}

function allowsPackage(patterns, specifier) {
  const name = isBuiltin(specifier) ? `node:${specifier.replace(/^node:/, '')}` : specifier;
  return patterns.some(
    (p) =>
      p === '*' ||
      name === p ||
      (p.endsWith('/*') || p === 'node:*' ? name.startsWith(p.slice(0, -1)) : name.startsWith(`${p}/`)),
  );
}

/** Why `file` may not import `specifier`, or null. */
function refusal(file, specifier) {
  const from = layerOf(file);
  const layer = from === 'entryPoint' ? { layers: names, packages: [] } : table.layers[from];
  if (!layer)
    return `lib/${path.relative(lib, file)} stands in no known layer: add its layer to test/architecture/layers.json.`;
  const may = `It may import ${[from, ...layer.layers].join(', ')}; packages: ${layer.packages.join(', ') || 'none'}.`;
  if (!specifier.startsWith('.')) {
    return allowsPackage(layer.packages, specifier)
      ? null
      : `Layer "${from}" may not import the package "${specifier}". ${may}`;
  }
  const target = layerOf(path.resolve(path.dirname(file), specifier));
  if ((target === from && from !== 'entryPoint') || layer.layers.includes(target)) return null;
  return `Layer "${from}" may not import "${target}" (${specifier}). ${may}`;
}

/** @type {import('eslint').Rule.RuleModule} */
const layers = {
  meta: { type: 'problem', schema: [], docs: { description: 'Imports in lib/ go down, never up or sideways.' } },
  create(context) {
    const check = (node) => {
      if (typeof node.source?.value !== 'string') return;
      const message = refusal(context.filename, node.source.value);
      if (message) context.report({ node: node.source, message });
    };
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check,
      TSImportType: check,
    };
  },
};

/** @type {import('eslint').Rule.RuleModule} */
const runStatus = {
  meta: { type: 'problem', schema: [], docs: { description: 'Only `changeStatus` writes the status of a run.' } },
  create(context) {
    const services = context.sourceCode.parserServices;
    const checker = services.program.getTypeChecker();
    /** A change of a run's header: no other type has this column without the run's identity. */
    const isRunChange = (type) =>
      type?.getProperty('resultsAtClaim') !== undefined && type.getProperty('requestDigest') === undefined;
    const report = (node) =>
      context.report({ node, message: 'Only changeStatus (engine/transitions) writes the status of a run.' });
    return {
      'ObjectExpression > Property[key.name="status"]'(node) {
        const type = checker.getContextualType(services.esTreeNodeToTSNodeMap.get(node.parent));
        if (type && isRunChange(checker.getNonNullableType(type))) report(node);
      },
      'AssignmentExpression > MemberExpression.left[property.name="status"]'(node) {
        if (isRunChange(services.getTypeAtLocation(node.object))) report(node);
      },
    };
  },
};

export default { rules: { layers, 'run-status': runStatus } };
