/** Ownership as the image judges it: by its own clock and the worker's row (I12). A lease is live while its end lies in the future. */
import type { LeaseView } from '../../contracts/ports/run-store.port.js';
import type { RunRecord } from '../../contracts/run.js';
import type { ImageTables } from './image-tables.js';

/** The owner's lease of a running run; null for any other. */
export function leaseOf(tables: ImageTables, run: RunRecord): LeaseView | null {
  if (run.status !== 'running' || run.owner === null) return null;
  const worker = tables.workers.get(run.owner);
  return {
    owner: run.owner,
    heartbeatAt: worker?.heartbeatAt ?? null,
    expiresAt: worker?.leaseExpiresAt ?? null,
  };
}

export function isExpired(tables: ImageTables, run: RunRecord, now: number): boolean {
  return run.status === 'running' && (leaseOf(tables, run)?.expiresAt ?? 0) <= now;
}

/** Since when anybody may claim the run, by epoch ms; null when nobody may now. */
export function claimableSince(tables: ImageTables, run: RunRecord, now: number): number | null {
  switch (run.status) {
    case 'pending':
      return run.updatedAt;
    case 'retry_wait': {
      const due = run.nextAttemptAt ?? run.updatedAt;
      return due <= now ? due : null;
    }
    case 'running':
      return isExpired(tables, run, now) ? (leaseOf(tables, run)?.expiresAt ?? run.updatedAt) : null;
    default:
      return null;
  }
}
