import { SettingsError } from '../../sample-app/src/settings/environment.reader.js';
import { readSettings } from '../../sample-app/src/settings/settings.js';

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    readSettings(environment);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

describe('The settings of the sample', () => {
  it('have defaults for everything', () => {
    expect(readSettings({})).toEqual({
      port: 3000,
      database: { type: 'sqlite', file: './data/agent-runs.sqlite' },
      openai: null,
      demoModelDelayMs: 1500,
      ledgerUrl: null,
      agents: ['support@1', 'support@2', 'support-stream@1'],
      instructionsSuffix: '',
      worker: true,
      concurrency: 10,
      lease: '60s',
      reconcileEvery: '30s',
      backoffEvery: '5s',
      pollEvery: '1s',
      unknownVersionAfter: '60s',
      approvalExpires: '24h',
      logLevels: ['fatal', 'error', 'warn', 'log'],
    });
  });

  it('are taken from the environment', () => {
    expect(
      readSettings({
        PORT: '0',
        DATABASE_URL: 'postgres://me@db:5432/shop',
        OPENAI_BASE_URL: 'http://model/v1/',
        OPENAI_API_KEY: 'k',
        OPENAI_MODEL: 'm',
        LEDGER_URL: 'https://ledger',
        AGENT_RUNS_AGENTS: 'support@1, support-stream@1',
        AGENT_RUNS_INSTRUCTIONS_SUFFIX: ' Be brief.',
        AGENT_RUNS_WORKER: 'off',
        AGENT_RUNS_LEASE: '1.5s',
        LOG_LEVEL: 'fatal',
      }),
    ).toMatchObject({
      port: 0,
      database: { type: 'postgres', url: 'postgres://me@db:5432/shop' },
      openai: { baseUrl: 'http://model/v1', apiKey: 'k', model: 'm' },
      ledgerUrl: 'https://ledger',
      agents: ['support@1', 'support-stream@1'],
      instructionsSuffix: ' Be brief.',
      worker: false,
      lease: '1.5s',
      logLevels: ['fatal'],
    });
  });

  it.each([
    ['sqlite:./a/b.sqlite', { type: 'sqlite', file: './a/b.sqlite' }],
    ['sqlite:/abs/b.sqlite', { type: 'sqlite', file: '/abs/b.sqlite' }],
    ['sqlite:///abs/b.sqlite', { type: 'sqlite', file: '/abs/b.sqlite' }],
    ['sqlite://./b.sqlite', { type: 'sqlite', file: './b.sqlite' }],
    ['mysql://root:p%40ss@db/shop', { type: 'mysql', url: 'mysql://root:p%40ss@db/shop' }],
    ['mariadb://root@db/shop', { type: 'mysql', url: 'mysql://root@db/shop' }],
    ['postgresql://u@db/shop', { type: 'postgres', url: 'postgresql://u@db/shop' }],
  ])('DATABASE_URL=%s', (DATABASE_URL, database) => {
    expect(readSettings({ DATABASE_URL }).database).toEqual(database);
  });

  it.each([
    ['PORT', 'http'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '3000.5'],
    ['DATABASE_URL', 'sqlite:'],
    ['DATABASE_URL', 'sqlite::memory:'],
    ['DATABASE_URL', 'mysql://db'],
    ['DATABASE_URL', 'oracle://db/x'],
    ['DATABASE_URL', 'nonsense'],
    ['LEDGER_URL', 'ftp://x'],
    ['AGENT_RUNS_LEASE', '60'],
    ['AGENT_RUNS_LEASE', '0s'],
    ['AGENT_RUNS_POLL_EVERY', 'often'],
    ['AGENT_RUNS_WORKER', 'true'],
    ['AGENT_RUNS_CONCURRENCY', '0'],
    ['AGENT_RUNS_AGENTS', 'support'],
    ['AGENT_RUNS_APPROVAL_EXPIRES', 'never'],
    ['LOG_LEVEL', 'loud'],
    ['DEMO_MODEL_DELAY_MS', '1s'],
  ])('a bad value is a problem that names the variable: %s=%s', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name} `))]);
  });

  it('name every variable that is wrong at once, and never show what may hold a password', () => {
    const problems = problemsOf({
      PORT: 'x',
      DATABASE_URL: 'oracle://root:hunter2@db/x',
      OPENAI_BASE_URL: 'hunter2',
      OPENAI_MODEL: 'm',
      LEDGER_URL: 'hunter2',
    });
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'PORT',
      'DATABASE_URL',
      'OPENAI_BASE_URL',
      'OPENAI_API_KEY',
      'LEDGER_URL',
    ]);
    expect(problems.join()).not.toContain('hunter2');
  });
});
