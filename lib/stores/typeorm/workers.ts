import type { WorkerBeat, WorkerRecord } from '../../contracts/ports/run-store.port.js';
import { namesOf, recordOf, valuesOf } from './rows.js';
import { WORKERS } from './tables.js';
import { perDialect, type Dialect } from './dialect.js';
import { query, queryOne, write, type Program } from './program.js';

/** After this, nobody asks any more whose runs these were. */
const FORGOTTEN_AFTER_MS = 3_600_000;

const WORKER_COLUMNS = namesOf(WORKERS.columns);

const statements = perDialect((dialect) => {
  const { workers } = dialect.tables;
  return {
    clock: `SELECT ${dialect.now} AS clock`,
    beat: dialect.insertOrReplace(workers, WORKER_COLUMNS, ['id']),
    retire: `DELETE FROM ${workers} WHERE id = ?`,
    forgotten: `SELECT id FROM ${workers} WHERE lease_expires_at < ? ORDER BY id`,
    forget: `DELETE FROM ${workers} WHERE id = ? AND lease_expires_at < ?`,
    live: `SELECT ${WORKER_COLUMNS.join(', ')} FROM ${workers} WHERE lease_expires_at > ${dialect.now} ORDER BY id`,
  };
});

/**
 * One row per process carries the lease of all its runs, judged by the database's clock alone (I12).
 * The lease counts from a moment before the row is written, never from one after it.
 * @param isFirst also clears rows of processes that died: found by a plain read, so that no living one is waited for
 */
export function* beat(
  dialect: Dialect,
  { workerId, leaseMs, startedAt, offers }: WorkerBeat,
  isFirst: boolean,
): Program<{ now: number; leaseExpiresAt: number }> {
  const sql = statements(dialect);
  const now = Number((yield* queryOne(sql.clock))?.['clock']);
  const leaseExpiresAt = now + leaseMs;
  if (isFirst) {
    const before = now - FORGOTTEN_AFTER_MS;
    for (const { id } of yield* query(sql.forgotten, [before])) yield* write(sql.forget, [id as string, before]);
  }
  yield* write(
    sql.beat,
    valuesOf(WORKERS.columns, '', { id: workerId, startedAt, heartbeatAt: now, leaseExpiresAt, offers }),
  );
  return { now, leaseExpiresAt };
}

export function* retireWorker(dialect: Dialect, workerId: string): Program<void> {
  yield* write(statements(dialect).retire, [workerId]);
}

export function* liveWorkers(dialect: Dialect): Program<WorkerRecord[]> {
  return (yield* query(statements(dialect).live)).map((row) => recordOf<WorkerRecord>(WORKERS.columns, '', row));
}
