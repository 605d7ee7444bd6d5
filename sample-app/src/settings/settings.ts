import type { LogLevel } from '@nestjs/common';
import type { Duration } from 'nestjs-agent-runs';
import { EnvironmentReader } from './environment.reader.js';

export type DatabaseSettings = { type: 'sqlite'; file: string } | { type: 'mysql' | 'postgres'; url: string };

export interface Settings {
  port: number;
  database: DatabaseSettings;
  /** An OpenAI-compatible chat-completions endpoint; null = the built-in demo model. */
  openai: { baseUrl: string; apiKey: string; model: string } | null;
  /** Between two answers of the demo model. */
  demoModelDelayMs: number;
  /** Null = the built-in ledger, in the same database. */
  ledgerUrl: string | null;
  /** `name@version` of the agents that this process registers. */
  agents: string[];
  instructionsSuffix: string;
  worker: boolean;
  concurrency: number;
  lease: Duration;
  reconcileEvery: Duration;
  backoffEvery: Duration;
  pollEvery: Duration;
  unknownVersionAfter: Duration;
  approvalExpires: Duration;
  logLevels: LogLevel[];
}

export const AGENTS = ['support@1', 'support@2', 'support-stream@1'] as const;

const LOG_LEVELS: LogLevel[] = ['fatal', 'error', 'warn', 'log', 'debug', 'verbose'];

/** @throws SettingsError naming every variable that is wrong */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const read = new EnvironmentReader(environment);
  const settings: Settings = {
    port: read.integer('PORT', 3000, 0, 65_535),
    database: readDatabase(read),
    openai: readModel(read),
    demoModelDelayMs: read.integer('DEMO_MODEL_DELAY_MS', 1_500, 0, 60_000),
    ledgerUrl: read.httpUrl('LEDGER_URL'),
    agents: read.list('AGENT_RUNS_AGENTS', AGENTS),
    instructionsSuffix: read.text('AGENT_RUNS_INSTRUCTIONS_SUFFIX') ?? '',
    worker: read.choice('AGENT_RUNS_WORKER', ['on', 'off'], 'on') === 'on',
    concurrency: read.integer('AGENT_RUNS_CONCURRENCY', 10, 1, 10_000),
    lease: read.duration('AGENT_RUNS_LEASE', '60s'),
    reconcileEvery: read.duration('AGENT_RUNS_RECONCILE_EVERY', '30s'),
    backoffEvery: read.duration('AGENT_RUNS_BACKOFF_EVERY', '5s'),
    pollEvery: read.duration('AGENT_RUNS_POLL_EVERY', '1s'),
    unknownVersionAfter: read.duration('AGENT_RUNS_UNKNOWN_VERSION_AFTER', '60s'),
    approvalExpires: read.duration('AGENT_RUNS_APPROVAL_EXPIRES', '24h'),
    logLevels: LOG_LEVELS.slice(0, LOG_LEVELS.indexOf(read.choice('LOG_LEVEL', LOG_LEVELS, 'log')) + 1),
  };
  read.finish();
  return settings;
}

function readDatabase(read: EnvironmentReader): DatabaseSettings {
  const name = 'DATABASE_URL';
  const value = read.text(name) ?? 'sqlite:./data/agent-runs.sqlite';
  // The value may hold a password: it is never shown.
  const refuse = (what: string): DatabaseSettings => {
    read.report(
      name,
      `${what}. Give sqlite:./path/to/file, mysql://user@host/database or postgres://user@host/database.`,
    );
    return { type: 'sqlite', file: '' };
  };
  if (value.startsWith('sqlite:')) {
    const file = value.slice('sqlite:'.length).replace(/^\/\/(?=\/|\.)/, '');
    return file === '' || file.startsWith(':memory:') ? refuse('names no file') : { type: 'sqlite', file };
  }
  if (!URL.canParse(value)) return refuse('is no URL');
  const { protocol, pathname } = new URL(value);
  if (pathname.length < 2) return refuse('names no database');
  if (protocol === 'mysql:' || protocol === 'mariadb:') {
    return { type: 'mysql', url: value.replace(/^mariadb:/, 'mysql:') };
  }
  if (protocol === 'postgres:' || protocol === 'postgresql:') return { type: 'postgres', url: value };
  return refuse('is for a database that the sample does not know');
}

function readModel(read: EnvironmentReader): Settings['openai'] {
  const baseUrl = read.httpUrl('OPENAI_BASE_URL');
  if (baseUrl === null) return null;
  const apiKey = read.text('OPENAI_API_KEY');
  const model = read.text('OPENAI_MODEL');
  if (apiKey === undefined) read.report('OPENAI_API_KEY', 'is needed together with OPENAI_BASE_URL.');
  if (model === undefined) read.report('OPENAI_MODEL', 'is needed together with OPENAI_BASE_URL.');
  return { baseUrl, apiKey: apiKey ?? '', model: model ?? '' };
}
