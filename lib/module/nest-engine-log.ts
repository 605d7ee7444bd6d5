import { Logger } from '@nestjs/common';
import type { EngineLog } from '../contracts/ports/system.port.js';
import { redacted } from './redacting-observer.js';
import type { AgentCatalog } from '../contracts/agent-definition.js';
import { scheduleText } from '../schedule/run-job.js';
import type { JobTrigger } from '../schedule/job-trigger.js';
import type { ModuleSettings } from './module-settings.js';

type Fields = Record<string, unknown>;

/** The engine's words to operators, through the host's Nest `Logger`. Fields are ids and codes, never content. */
export class NestEngineLog implements EngineLog {
  private readonly logger = new Logger('AgentRuns');

  constructor(private readonly redactKeys: readonly string[] = []) {}

  debug(message: string, fields?: Fields): void {
    this.logger.debug(this.line(message, fields));
  }

  info(message: string, fields?: Fields): void {
    this.logger.log(this.line(message, fields));
  }

  warn(message: string, fields?: Fields): void {
    this.logger.warn(this.line(message, fields));
  }

  error(message: string, fields?: Fields): void {
    this.logger.error(this.line(message, fields));
  }

  private line(message: string, fields: Fields = {}): string {
    const { stack, ...rest } = redacted(fields, this.redactKeys);
    const told = Object.entries(rest).filter(([, value]) => value !== undefined);
    const line =
      told.length === 0 ? message : `${message} (${told.map(([key, value]) => `${key}=${text(value)}`).join(' ')})`;
    return typeof stack === 'string' ? `${line}\n${stack}` : line;
  }
}

/** On one line, whatever it is: a line break would let a value forge a log entry. */
function text(value: unknown): string {
  const plain = typeof value === 'string' ? value : (JSON.stringify(value) as string | undefined);
  return (plain ?? String(value)).replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

/** The one line that says what this process is. */
export function startUpLine(
  store: string,
  catalog: AgentCatalog,
  { engine, schedules }: ModuleSettings,
  trigger: JobTrigger | null,
): string {
  const agents = catalog.all().map(({ name, version }) => `${name}@${version}`);
  const worker = engine.worker
    ? `on (${engine.maxConcurrentRuns} runs at a time, lease ${seconds(engine.leaseMs)}, poll ${seconds(engine.pollMs)})`
    : 'off';
  const jobs = trigger
    ? `by ${trigger.kind} (reconcile ${scheduleText(schedules.reconcile)}, backoff ${scheduleText(schedules.backoff)}, expire ${scheduleText(schedules.expire)})`
    : 'none';
  return `Store ${store}; agents ${agents.join(', ') || 'none'}; worker ${worker}; jobs ${jobs}`;
}

function seconds(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`;
}
