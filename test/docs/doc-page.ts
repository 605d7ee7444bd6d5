/** The Markdown a reader sees: README, change log and everything under docs/, with its code blocks, headings and links. */
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

export interface CodeBlock {
  /** The page, from the root of the repository. */
  page: string;
  /** Of the block's first line of code, from 1. */
  line: number;
  language: string;
  /** `ts run` is executed, any other `ts` block is only type-checked. */
  isRun: boolean;
  /** Servers it is executed on, each with a database of its own in `DATABASE_URL`: `ts run mariadb postgres`. */
  servers: string[];
  code: string;
}

export interface Link {
  page: string;
  line: number;
  target: string;
}

export interface DocPage {
  path: string;
  lines: string[];
  blocks: CodeBlock[];
  /** Lines outside of code blocks, by their number from 1. */
  prose: Map<number, string>;
}

const FENCE = /^```\s*(\S*)(?:\s+(.*))?$/;

export function readPages(): DocPage[] {
  const docs = readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .map((file) => posix.join('docs', file.replaceAll('\\', '/')))
    .filter((file) => file.endsWith('.md'))
    .sort();
  return ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs].map(readPage);
}

export function readPage(path: string): DocPage {
  const lines = readFileSync(path, 'utf8').split('\n');
  const page: DocPage = { path, lines, blocks: [], prose: new Map() };
  let open: CodeBlock | null = null;
  lines.forEach((text, index) => {
    const fence = FENCE.exec(text);
    if (open && text.trim() === '```') {
      page.blocks.push({ ...open, code: `${open.code}\n` });
      open = null;
    } else if (open) {
      open.code += open.code === '' ? text : `\n${text}`;
    } else if (fence) {
      const [, language = '', rest = ''] = fence;
      const words = rest.split(/\s+/).filter((word) => word !== '');
      open = {
        page: path,
        line: index + 2,
        language,
        isRun: words.includes('run'),
        servers: words.filter((word) => word !== 'run'),
        code: '',
      };
    } else {
      page.prose.set(index + 1, text);
    }
  });
  if (open) throw new Error(`${path}: the code block that begins before line ${(open as CodeBlock).line} never ends.`);
  return page;
}

export function headingsOf({ prose }: DocPage, level?: number): string[] {
  return [...prose.values()].flatMap((line) => {
    const [, marks = '', text = ''] = /^(#{1,6})\s+(.*)$/.exec(line) ?? [];
    return marks !== '' && (level === undefined || marks.length === level) ? [text.trim()] : [];
  });
}

/** As the anchor of a heading is formed: small letters, no punctuation, dashes for spaces; `-1`, `-2` … for repetitions. */
export function anchorsOf(page: DocPage): string[] {
  const seen = new Map<string, number>();
  return headingsOf(page).map((heading) => {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-');
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
}

export function linksOf({ path, prose }: DocPage): Link[] {
  return [...prose].flatMap(([line, text]) =>
    [...text.replaceAll(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map((match) => ({
      page: path,
      line,
      target: match[1] ?? '',
    })),
  );
}

/** The rows of the first table under a heading, without its head; cells as they stand. */
export function tableUnder({ path, prose }: DocPage, heading: string): string[][] {
  const lines = [...prose.values()];
  const from = lines.findIndex((line) => /^#{1,6}\s/.test(line) && line.replace(/^#+\s+/, '').trim() === heading);
  if (from < 0) throw new Error(`${path} has no heading "${heading}".`);
  const rows: string[][] = [];
  for (const line of lines.slice(from + 1)) {
    if (line.startsWith('|')) rows.push(cellsOf(line));
    else if (rows.length > 0 || /^#{1,6}\s/.test(line)) break;
  }
  if (rows.length < 3) throw new Error(`${path} has no table under "${heading}".`);
  return rows.slice(2);
}

function cellsOf(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}
