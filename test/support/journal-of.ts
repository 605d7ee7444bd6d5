import type { JournalEntry, SequencedEntry } from '../../lib/contracts/journal-entry.js';
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import type { RunRecord } from '../../lib/contracts/run.js';

/** All entries of a run, from the store. */
export async function journalOf(store: RunStore, runId: string): Promise<SequencedEntry[]> {
  const read = await store.readJournal(runId, 0, 100_000);
  if (!read) throw new Error(`no run ${runId}`);
  return read.entries;
}

type EntryOf<Type, Entry = JournalEntry> = Entry extends { type: infer Types }
  ? Type extends Types
    ? Entry
    : never
  : never;

/** The entries of one type, in order. */
export async function entriesOf<Type extends JournalEntry['type']>(
  store: RunStore,
  runId: string,
  type: Type,
): Promise<(EntryOf<Type> & { sequence: number })[]> {
  const entries = await journalOf(store, runId);
  return entries.filter((entry) => entry.type === type);
}

/** The stored row. */
export async function rowOf(store: RunStore, runId: string): Promise<RunRecord> {
  const loaded = await store.load(runId);
  if (!loaded) throw new Error(`no run ${runId}`);
  return loaded.run;
}
