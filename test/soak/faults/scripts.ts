/** Prompts that carry their script and their run's id, as the application's model reads them. */
import type { StartOptions } from '../../../lib/contracts/run-requests.js';

/** The tools that a reply asks for, at once; a text ends the run. */
export type Turn =
  readonly (string | { name: string; order: string })[] | string | { fail: { status: number }; text: string };

export function started(runId: string, turns: readonly Turn[], options: Partial<StartOptions> = {}): StartOptions {
  const script = turns.map((turn) => {
    if (typeof turn === 'string') return { text: turn };
    if ('fail' in turn) return turn;
    return {
      calls: turn
        .map((call) => (typeof call === 'string' ? { name: call, order: 'o-1' } : call))
        .map(({ name, order }) => ({ name, args: { order } })),
    };
  });
  return { agent: 'desk', runId, requestId: runId, prompt: `@@${JSON.stringify(script)}\n${runId}`, ...options };
}

/** `run-1` … */
export function runIds(count: number, from = 1): string[] {
  return Array.from({ length: count }, (_, index) => `run-${from + index}`);
}
