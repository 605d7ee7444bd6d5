// The lint rule of the rooms of lib/ (docs/architecture.md). Its table is test/architecture/rooms.json.
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const lib = fileURLToPath(new URL('../lib/', import.meta.url));
const table = JSON.parse(readFileSync(new URL('../test/architecture/rooms.json', import.meta.url), 'utf8'));
const names = Object.keys(table.rooms);

/** The room a file of lib/ stands in; a file directly under lib/ is a door. */
function roomOf(file) {
  const inside = path.relative(lib, file).split(path.sep).join('/');
  if (inside.startsWith('../')) return 'outside';
  if (!inside.includes('/')) return 'door';
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
  const from = roomOf(file);
  const room = from === 'door' ? { rooms: names, packages: [] } : table.rooms[from];
  if (!room)
    return `lib/${path.relative(lib, file)} stands in no known room: add its room to test/architecture/rooms.json.`;
  const may = `It may import ${[from, ...room.rooms].join(', ')}; packages: ${room.packages.join(', ') || 'none'}.`;
  if (!specifier.startsWith('.')) {
    return allowsPackage(room.packages, specifier)
      ? null
      : `Room "${from}" may not import the package "${specifier}". ${may}`;
  }
  const target = roomOf(path.resolve(path.dirname(file), specifier));
  if ((target === from && from !== 'door') || room.rooms.includes(target)) return null;
  return `Room "${from}" may not import "${target}" (${specifier}). ${may}`;
}

/** @type {import('eslint').Rule.RuleModule} */
const rooms = {
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

export default { rules: { rooms } };
