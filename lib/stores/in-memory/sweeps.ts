import { isOffered } from '../../contracts/agent-definition.js';
import type { Places } from '../../contracts/page-cursor.js';
import type {
  DueAnswer,
  DueQuery,
  LeaseView,
  OverdueAnswer,
  OverdueQuery,
  WorkerBeat,
  WorkerRecord,
} from '../../contracts/ports/run-store.port.js';
import { isSettled, RUN_STATUSES } from '../../contracts/run-status.js';
import type { RunRecord } from '../../contracts/run.js';
import { detached } from '../codec/payload-codec.js';
import type { InMemoryTables } from './tables.js';

/** After this, nobody asks any more whose runs these were. */
const FORGOTTEN_AFTER_MS = 3_600_000;

export function heartbeat(
  tables: InMemoryTables,
  now: number,
  beat: WorkerBeat,
): { now: number; leaseExpiresAt: number } {
  if (!tables.workers.has(beat.workerId)) {
    for (const { id, leaseExpiresAt } of [...tables.workers.values()]) {
      if (leaseExpiresAt < now - FORGOTTEN_AFTER_MS) tables.workers.delete(id);
    }
  }
  const leaseExpiresAt = now + beat.leaseMs;
  tables.workers.set(beat.workerId, {
    id: beat.workerId,
    startedAt: beat.startedAt,
    heartbeatAt: now,
    leaseExpiresAt,
    offers: detached([...beat.offers]),
  });
  return { now, leaseExpiresAt };
}

export function liveWorkers(tables: InMemoryTables, now: number): WorkerRecord[] {
  return [...tables.workers.values()].filter(({ leaseExpiresAt }) => leaseExpiresAt > now).map(detached);
}

/** What a worker may claim. A plain read: whatever is found is decided again under its lock. */
export function due(tables: InMemoryTables, now: number, query: DueQuery): DueAnswer {
  const candidates =
    query.limit > 0 && query.offers.length > 0
      ? [
          ...tables.withStatus('pending'),
          ...tables.withStatus('retry_wait'),
          ...(query.takeovers ? tables.withStatus('running') : []),
        ]
      : [];
  const claimable = candidates.filter(
    (run) =>
      run.contractVersion <= query.contractVersion &&
      isOffered(run, query.offers) &&
      claimableSince(tables, run, now) !== null,
  );
  return {
    now,
    claimable: claimable
      .sort(byAge)
      .slice(0, query.limit)
      .map(({ id, status }) => ({ id, status })),
    held: query.held
      .map((id) => tables.runs.get(id))
      .filter((run) => run !== undefined)
      .map(({ id, status, attempt, interruptRequest }) => ({
        id,
        status,
        attempt,
        interruptRequested: interruptRequest !== null,
        hasInbox: [...(tables.inboxes.get(id)?.values() ?? [])].some((message) => message.status === 'queued'),
      })),
  };
}

/** Offenders against I11, found by a plain read too. */
export function overdue(tables: InMemoryTables, now: number, query: OverdueQuery): OverdueAnswer {
  const ids = (runs: readonly RunRecord[]) =>
    runs
      .filter((run) => run.contractVersion <= query.contractVersion)
      .sort(byAge)
      .slice(0, query.limit)
      .map(({ id }) => id);
  const running = tables.withStatus('running');
  const active = [...tables.withStatus('pending'), ...tables.withStatus('retry_wait'), ...running];
  const isStranded = (run: RunRecord) => {
    const since = claimableSince(tables, run, now);
    return since !== null && now - since > query.unofferedAfterMs && !isOffered(run, query.liveOffers);
  };
  const withExpired = new Set(
    tables
      .pendingInteractions()
      .filter(({ expiresAt }) => expiresAt !== null && expiresAt <= now)
      .map(({ runId }) => runId),
  );
  return {
    now,
    expired: ids(running.filter((run) => isExpired(tables, run, now))),
    unoffered: ids(active.filter(isStranded)),
    pastDeadline: ids(openRuns(tables).filter(({ deadlineAt }) => deadlineAt !== null && deadlineAt <= now)),
    answered: ids(answeredRuns(tables)),
    expiredInteractions: ids([...withExpired].map((id) => tables.runs.get(id)).filter((run) => run !== undefined)),
  };
}

/** Runs that wait for people only, and nobody has anything left to answer. */
export function answeredRuns(tables: InMemoryTables): RunRecord[] {
  return tables
    .withStatus('waiting')
    .filter(
      (run) =>
        run.waitingFor.every((reason) => reason === 'approval' || reason === 'question') &&
        tables.interactionsOf(run.id).every(({ status }) => status !== 'pending'),
    );
}

function openRuns(tables: InMemoryTables): RunRecord[] {
  return RUN_STATUSES.filter((status) => !isSettled(status)).flatMap((status) => tables.withStatus(status));
}

/**
 * Ownership as the image judges it: by its own clock and the worker's row (I12). A lease is live while its end lies in
 * the future.
 *
 * The owner's lease of a running run; null for any other.
 */
export function leaseOf(tables: InMemoryTables, run: RunRecord): LeaseView | null {
  if (run.status !== 'running' || run.owner === null) return null;
  const worker = tables.workers.get(run.owner);
  return {
    owner: run.owner,
    heartbeatAt: worker?.heartbeatAt ?? null,
    expiresAt: worker?.leaseExpiresAt ?? null,
  };
}

export function isExpired(tables: InMemoryTables, run: RunRecord, now: number): boolean {
  return run.status === 'running' && (leaseOf(tables, run)?.expiresAt ?? 0) <= now;
}

/** Since when anybody may claim the run, by epoch ms; null when nobody may now. */
export function claimableSince(tables: InMemoryTables, run: RunRecord, now: number): number | null {
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

/** Older before newer, those of one moment by id: by bytes, the same on every store. */
export function byAge(a: Places['runs'], b: Places['runs']): number {
  return a.createdAt - b.createdAt || byText(a.id, b.id);
}

export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
