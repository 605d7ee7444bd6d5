/** What the pages show is true: every TypeScript block passes the compiler, and those marked `ts run` are executed as they stand. */
import { mkdtempSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { jest } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  isServerThere,
  SERVER_TYPES,
  serverUrl,
  ServerSubject,
  type ServerType,
} from '../stores/typeorm/server-subject.js';
import { describeIf } from '../support/describe-if.js';
import { readPages } from './doc-page.js';
import { SnippetFiles, typeErrors, type SnippetFile } from './snippet-files.js';

jest.setTimeout(120_000);

const files = new SnippetFiles();
const snippets = readPages()
  .flatMap(({ blocks }) => blocks)
  .filter(({ language }) => language === 'ts')
  .map((block) => files.write(block));

afterAll(() => files.remove());

const executed = snippets.filter(({ isRun }) => isRun);
const onServers = executed.flatMap((snippet) => snippet.servers.map((server) => ({ ...snippet, server })));

/** Executes a snippet in a directory of its own. One that exports a module is a host: it is booted and closed again. */
async function execute({ file }: SnippetFile): Promise<void> {
  const before = process.cwd();
  process.chdir(mkdtempSync(`${file}-`));
  try {
    const exports = (await import(pathToFileURL(file).href)) as Record<string, Type>;
    const [, root] = Object.entries(exports).find(([name]) => name.endsWith('Module')) ?? [];
    if (!root) return;
    const app = await NestFactory.createApplicationContext(root, { logger: false });
    await app.close();
  } finally {
    process.chdir(before);
  }
}

/** The same with `DATABASE_URL` naming an empty database on that server. */
async function executeOn(type: ServerType, snippet: SnippetFile): Promise<void> {
  // Tables are the snippet's business.
  await (await ServerSubject.create(type)).dispose(false);
  const subject = await ServerSubject.create(type);
  const url = serverUrl(type);
  url.pathname = subject.database;
  process.env['DATABASE_URL'] = url.href;
  try {
    await execute(snippet);
  } finally {
    delete process.env['DATABASE_URL'];
    await subject.dispose(false);
  }
}

/** Not in any page: it proves that a mistake would be found, and where. */
const wrong = files.write({
  page: 'no-page.md',
  line: 10,
  language: 'ts',
  isRun: false,
  servers: [],
  code: "import { RunService } from 'nestjs-agent-runs';\ndeclare const runs: RunService;\nvoid runs.begin();\n",
});

describe('The TypeScript of README and docs/', () => {
  let errors: string[] = [];
  beforeAll(() => {
    errors = typeErrors([...snippets, wrong]);
  });

  it('passes the compiler, block by block', () => {
    expect(errors.filter((error) => !error.startsWith(wrong.page))).toEqual([]);
  });

  it('would not pass it with a mistake in it', () => {
    expect(errors.filter((error) => error.startsWith(wrong.page))).toEqual([
      expect.stringMatching(/^no-page\.md:12: Property 'begin' does not exist/),
    ]);
  });

  it.each(executed.filter(({ servers }) => servers.length === 0))('executes $page:$line', async (snippet) => {
    await execute(snippet);
  });
});

describe('The TypeScript that needs a server', () => {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it('names servers that there are', () => {
    expect(onServers.length).toBeGreaterThan(0);
    expect(onServers.filter(({ server }) => !SERVER_TYPES.some((type) => type === server))).toEqual([]);
  });

  for (const type of SERVER_TYPES) {
    const its = onServers.filter(({ server }) => server === type);
    if (its.length === 0) continue;
    describeIf(isServerThere(type))(`on ${type}`, () => {
      it.each(its)('executes $page:$line', async (snippet) => {
        await executeOn(type, snippet);
      });
    });
  }
});
