import type { AgentCatalog } from '../contracts/agent-definition.js';
import { scheduleText } from '../schedule/job-schedule.js';
import type { JobTrigger } from '../schedule/job-trigger.js';
import type { ModuleSettings } from './module-settings.js';

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
