// `npm run size`: files, lines and lines of code of what is published, by folder. Code is what is neither blank nor comment.
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';

const files = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => measure(posix.join('lib', file.replaceAll('\\', '/'))));

/** Lines that hold a token; the lines of a text that spans several count. */
function measure(path) {
  const text = readFileSync(path, 'utf8');
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
  const code = new Set();
  const visit = (node) => {
    const children = node.getChildren(source);
    if (children.length > 0)
      return children
        .filter(({ kind }) => kind < ts.SyntaxKind.FirstJSDocNode || kind > ts.SyntaxKind.LastJSDocNode)
        .forEach(visit);
    if (node.getWidth(source) === 0) return;
    const first = source.getLineAndCharacterOfPosition(node.getStart(source)).line;
    const last = source.getLineAndCharacterOfPosition(node.getEnd()).line;
    for (let line = first; line <= last; line += 1) code.add(line);
  };
  visit(source);
  return { path, lines: text.split('\n').length - 1, code: code.size };
}

const folderOf = (path) => path.split('/').slice(1, -1).join('/') || '(entry points)';
const sum = (list, field) => list.reduce((total, file) => total + file[field], 0);
const print = (name, list) =>
  console.log(
    `${name.padEnd(34)} ${String(list.length).padStart(5)} ${String(sum(list, 'lines')).padStart(7)} ${String(sum(list, 'code')).padStart(7)}`,
  );

console.log(`${''.padEnd(34)} files   lines    code`);
for (const folder of [...new Set(files.map(({ path }) => folderOf(path)))].sort()) {
  print(
    folder,
    files.filter(({ path }) => folderOf(path) === folder),
  );
}
print('published', files);
const largest = [...files].sort((a, b) => b.code - a.code)[0];
console.log(`largest: ${largest.path}, ${largest.code} lines of code`);
