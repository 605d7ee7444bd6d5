import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, posix } from 'node:path';

interface Room {
  rooms: string[];
  packages: string[];
}

const table = JSON.parse(readFileSync('test/architecture/rooms.json', 'utf8')) as {
  rooms: Record<string, Room>;
  roles: string[];
  drawers: string[];
};
const files = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'))
  .sort();
const read = (file: string) => readFileSync(`lib/${file}`, 'utf8');

const roomOf = (file: string) =>
  !file.includes('/')
    ? 'door'
    : (Object.keys(table.rooms).find((room) => file.startsWith(`${room}/`)) ?? 'no known room');
const importLine = /^\s*(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;
const importsOf = (file: string) => [...read(file).matchAll(importLine)].map((match) => match[1] ?? match[2] ?? '');
const packageMatches = (pattern: string, name: string) =>
  pattern === '*' || name === pattern || name.startsWith(pattern.endsWith('*') ? pattern.slice(0, -1) : `${pattern}/`);

function isAllowed(file: string, specifier: string): boolean {
  const from = roomOf(file);
  const room = from === 'door' ? { rooms: Object.keys(table.rooms), packages: [] } : table.rooms[from];
  if (!room) return false;
  if (specifier.startsWith('.')) {
    const target = roomOf(posix.join(dirname(file), specifier));
    return room.rooms.includes(target) || (target === from && from !== 'door');
  }
  const name = isBuiltin(specifier) ? `node:${specifier.replace(/^node:/, '')}` : specifier;
  return room.packages.some((pattern) => packageMatches(pattern, name));
}

describe('The rooms of lib/', () => {
  it('stand in the table of test/architecture/rooms.json', () => {
    expect(files.filter((file) => roomOf(file) === 'no known room')).toEqual([]);
  });

  it('import down, never up or sideways, and only the packages their room allows', () => {
    const offences = files.flatMap((file) =>
      importsOf(file)
        .filter((specifier) => !isAllowed(file, specifier))
        .map((specifier) => `lib/${file} (${roomOf(file)}) may not import ${specifier}`),
    );
    expect(offences).toEqual([]);
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
    expect(isAllowed('drawer/thing.ts', '../contracts/run.js')).toBe(false);
  });

  it('have doors that spell their exports by hand, and no inner index.ts', () => {
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

  it('and their folders are never a drawer for anything', () => {
    const drawers = new Set(table.drawers);
    const offences = files.filter((file) => file.split('/').some((part) => drawers.has(part.replace(/\..*$/, ''))));
    expect(offences).toEqual([]);
  });

  it('hold no more than 400 lines of code', () => {
    const codeLines = (file: string) =>
      read(file)
        .replaceAll(/\/\*[\s\S]*?\*\//g, '')
        .split('\n')
        .filter((line) => !/^\s*(?:\/\/.*)?$/.test(line)).length;
    expect(files.map((file) => [file, codeLines(file)]).filter(([, lines]) => (lines as number) > 400)).toEqual([]);
  });
});
