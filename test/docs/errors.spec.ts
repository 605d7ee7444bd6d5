/** docs/errors.md says of every code what the code says of itself. */
import { readFileSync } from 'node:fs';
import * as api from '../../lib/index.js';
import { AgentRunsError, ERROR_CODES, type ErrorCode, type ErrorFamily } from '../../lib/errors/agent-runs.error.js';
import { toHttpProblem } from '../../lib/http/results/http-problem.js';
import { headingsOf, readPage } from './doc-page.js';

const page = readPage('docs/errors.md');

/** Codes that only the HTTP surface knows: a type, so they are read from its source. */
const [codes = ''] = /HttpProblemCode =[^;]*;/.exec(readFileSync('lib/http/results/http-problem.ts', 'utf8')) ?? [];
const HTTP_CODES = [...codes.matchAll(/'([A-Z_]+)'/g)].map((match) => match[1] as string);

/** The line under each heading of a code: `*family · HTTP status*`. */
function facts(code: string): string {
  const at = page.lines.indexOf(`### ${code}`);
  return page.lines[at + 1] ?? '';
}

class AnyError extends AgentRunsError {
  readonly family = 'request';
  constructor(readonly code: ErrorCode) {
    super('any');
  }
}

function statusOf(code: ErrorCode): number | undefined {
  return (toHttpProblem(new AnyError(code)) as { getStatus?(): number } | null)?.getStatus?.();
}

/** From the exported classes; codes without one are recorded in runs only. */
function familyOf(code: ErrorCode): ErrorFamily {
  for (const exported of Object.values(api)) {
    if (typeof exported !== 'function' || !(exported.prototype instanceof AgentRunsError)) continue;
    const made = new (exported as new (...args: unknown[]) => AgentRunsError)([], { retryable: false });
    if (made.code === code && !(code === 'INVALID_ARGUMENTS' && made.family === 'run')) return made.family;
  }
  return 'run';
}

describe('docs/errors.md', () => {
  it('has one heading for each code, and no other', () => {
    const headings = headingsOf(page, 3);
    expect([...headings].sort()).toEqual([...ERROR_CODES, ...HTTP_CODES].sort());
    expect(HTTP_CODES.length).toBeGreaterThan(0);
  });

  it.each([...ERROR_CODES])('says family and HTTP status of %s', (code) => {
    const status = statusOf(code);
    expect(facts(code)).toBe(`*${familyOf(code)}${status === undefined ? '' : ` · HTTP ${status}`}*`);
  });

  it.each(HTTP_CODES)('says the HTTP status of %s', (code) => {
    expect(facts(code)).toMatch(/^\*http · HTTP [45]\d\d\*$/);
  });
});
