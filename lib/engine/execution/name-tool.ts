import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { RunState } from '../journal/run-state.js';

/**
 * Entries about a call say which tool it is of, so that a reader of one entry need not look for the reply that asked for it. Not written yet, they may be
 * changed. A name that no tool has is the model's own text, and stays with its reply.
 */
export function nameTool(entry: JournalEntry, { calls }: RunState): JournalEntry {
  if (!('key' in entry) || !entry.type.startsWith('tool.')) return entry;
  const call = calls.find(({ key }) => key === entry.key);
  return call && call.toolVersion !== null ? Object.assign(entry, { tool: call.name }) : entry;
}
