import type { UsageTotals } from '../../contracts/usage.js';
import type { PastGeneration, RunState } from './run-state.js';

/** What an earlier part of a run came to, told when the next one begins. */
export function pastGeneration(state: RunState): PastGeneration {
  const { totals, generationStart, ended } = state;
  const text = latestText(state);
  const usage = { ...totals.usage };
  for (const name of Object.keys(usage) as (keyof UsageTotals)[]) usage[name] -= generationStart.totals.usage[name];
  return {
    status: ended?.status ?? 'failed',
    output: text === '' ? null : text,
    error: ended?.error ?? null,
    turns: totals.turn - generationStart.totals.turn,
    usage,
    startedAt: generationStart.at,
    finishedAt: ended?.at ?? null,
  };
}

/** The text of the latest reply of this part; empty without one. */
export function latestText(state: RunState): string {
  if (state.failedText !== null) return state.failedText;
  for (let index = state.messages.length - 1; index >= state.historyLength; index--) {
    const message = state.messages[index];
    if (message?.role !== 'assistant') continue;
    return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  }
  return '';
}
