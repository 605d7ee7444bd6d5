/**
 * The TypeScript of the pages as files of this repository, so that they see what a reader's files would see: the package by its name, and its peers.
 * Beneath data/, which Git, the formatter and the linter leave alone.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';
import type { CodeBlock } from './doc-page.js';

export interface SnippetFile extends CodeBlock {
  file: string;
}

export class SnippetFiles {
  readonly directory: string;

  constructor() {
    mkdirSync('data', { recursive: true });
    this.directory = resolve(mkdtempSync(join('data', 'docs-')));
  }

  write(block: CodeBlock): SnippetFile {
    const name = `${block.page.replace(/\.md$/, '').replaceAll(/[^A-Za-z0-9]+/g, '-')}-${block.line}.ts`;
    const file = join(this.directory, name);
    // A block without imports or exports is a module all the same.
    const isModule = /^\s*(?:import|export)\b/m.test(block.code);
    writeFileSync(file, isModule ? block.code : `${block.code}export {};\n`);
    return { ...block, file };
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
    if (readdirSync('data').length === 0) rmSync('data', { recursive: true });
  }
}

/** What the compiler says about snippets, each with its page and the line there; empty when it has nothing to say. */
export function typeErrors(snippets: readonly SnippetFile[]): string[] {
  const { config } = ts.readConfigFile('tsconfig.json', (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, process.cwd());
  const program = ts.createProgram(
    snippets.map(({ file }) => file),
    { ...options, noEmit: true },
  );
  return snippets.flatMap((snippet) => {
    const source = program.getSourceFile(snippet.file);
    if (!source) return [`${snippet.page}:${snippet.line}: the compiler did not read it`];
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((found) => {
      const { line } = source.getLineAndCharacterOfPosition(found.start ?? 0);
      return `${snippet.page}:${snippet.line + line}: ${ts.flattenDiagnosticMessageText(found.messageText, ' ')}`;
    });
  });
}
