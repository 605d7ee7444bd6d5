import { describe, expect, it } from '@jest/globals';
import type { SequencedEntry } from '../../../lib/contracts/journal-entry.js';
import type { RunStore } from '../../../lib/contracts/ports/run-store.port.js';
import { JournalFold } from '../../../lib/engine/journal/fold-journal.js';
import { readRunState } from '../../../lib/engine/journal/read-whole-journal.js';
import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';
import { Sha256Digester } from '../../../lib/system/system-ports.js';
import { appendNotes, running, upTo } from '../../../packages/contract/lib/scenario.js';
import { TamperedStore } from '../../support/tampered-store.js';

const fold = new JournalFold(new Sha256Digester());

async function stored(notes: number): Promise<MemoryRunStore> {
  const store = new MemoryRunStore();
  await running(store);
  for (const value of upTo(notes)) await appendNotes(store, 'run-1', 1, [value]);
  return store;
}

const read = (store: RunStore) => readRunState(store, fold, 'run-1');

describe('reading a whole journal', () => {
  it('JRN-4: reads page by page to the end', async () => {
    const { run, state } = (await read(await stored(2_500))) ?? {};
    expect(state?.sequence).toBe(2_502);
    expect(run?.sequence).toBe(2_502);
  });

  it('a run that does not exist is null', async () => {
    expect(await readRunState(new MemoryRunStore(), fold, 'nobody')).toBeNull();
  });

  const broken: [what: string, (entries: SequencedEntry[]) => SequencedEntry[]][] = [
    ['ends before the run says it does', (entries) => entries.slice(0, -1)],
    ['has a gap, at which a reader stops', (entries) => entries.slice(0, 3)],
    ['has a gap, which a reader skipped', (entries) => entries.filter(({ sequence }) => sequence !== 4)],
    ['says something twice', (entries) => [...entries.slice(0, 3), ...entries.slice(2)]],
    ['is gone', () => []],
    [
      'speaks of a call that no reply asked for',
      (entries) =>
        entries.map((entry) =>
          entry.sequence === 3
            ? { type: 'tool.completed', at: 1, key: 'r1.m9.t0', output: null, sequence: entry.sequence }
            : entry,
        ),
    ],
  ];

  it.each(broken)('STO-4: a journal that %s is corrupt, never the shorter run it seems to tell', async (_, tamper) => {
    const store = new TamperedStore(await stored(5), tamper);
    await expect(read(store)).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT', details: { runId: 'run-1' } });
  });
});
