/** An image as the shortest list of commits that brings it about: what a compacted log holds. Workers are left out: they belong to living processes. */
import type { ImageChange } from './image-change.js';
import type { ImageTables } from './image-tables.js';

export function* dump(tables: ImageTables): Generator<ImageChange[]> {
  for (const session of tables.sessions.values()) yield [{ kind: 'session', session }];
  for (const run of tables.runs.values()) {
    yield [{ kind: 'run', run }];
    const rows = tables.journals.get(run.id) ?? [];
    for (const row of rows) yield [{ kind: 'journal', runId: run.id, row }];
    // Totals may have moved without an entry since the last row, which has just put its own.
    if (rows.length > 0) yield [{ kind: 'header', runId: run.id, change: { totals: run.totals } }];
  }
  for (const interaction of tables.interactions.values()) yield [{ kind: 'interaction', interaction }];
  for (const inbox of tables.inboxes.values()) {
    for (const message of inbox.values()) yield [{ kind: 'inbox', message }];
  }
}
