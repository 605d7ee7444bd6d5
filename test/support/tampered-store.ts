// A store whose journals were changed behind its back: rows lost, doubled or rewritten.
import type { SequencedEntry } from '../../lib/contracts/journal-entry.js';
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import type { RunRecord } from '../../lib/contracts/run.js';
import { FailingStore } from './failing-store.js';

export class TamperedStore extends FailingStore {
  /** @param tamper given a run's whole journal; what readers see of it from then on */
  constructor(
    inner: RunStore,
    private readonly tamper: (entries: SequencedEntry[], run: RunRecord) => SequencedEntry[],
  ) {
    super(inner);
  }

  override async readJournal(
    runId: string,
    after: number,
    limit: number,
  ): Promise<{ run: RunRecord; entries: SequencedEntry[] } | null> {
    const whole = await this.inner.readJournal(runId, 0, 1_000_000);
    if (!whole) return null;
    const entries = this.tamper(whole.entries, whole.run).filter(({ sequence }) => sequence > after);
    return { run: whole.run, entries: entries.slice(0, limit) };
  }
}
