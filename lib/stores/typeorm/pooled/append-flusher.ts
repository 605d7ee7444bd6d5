/**
 * The hot path on a database with a pool: appends of different runs share a statement while another one is on its way, and a run alone never waits for
 * company. A batch leaves out rows that somebody holds; what did not land for certain is appended alone, waiting for its row, and only that answer counts as
 * fenced or conflicting. Repeating an append is always right: the primary key refuses the second one, and the identical row is a success.
 */
import { explainAppend, type PreparedAppend } from '../journal-rows.js';
import { type Connections, type Deadline, repeat, runProgram } from './connections.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';
import { BatchQueue } from './batch-queue.js';

const MAX_ROWS = 128;
const MAX_BYTES = 1_000_000;

interface Pending {
  readonly append: PreparedAppend;
  readonly deadline: Deadline;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class AppendFlusher {
  private readonly queue: BatchQueue<Pending>;
  private alone = 0;

  constructor(
    private readonly driver: PooledDriver,
    private readonly connections: Connections,
  ) {
    this.queue = new BatchQueue({
      maxBatches: driver.maxBatches,
      divide,
      send: (batch) => this.flush(batch),
    });
  }

  append(append: PreparedAppend): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      this.queue.add({ append, deadline: this.connections.deadline(), resolve, reject });
    });
  }

  get isIdle(): boolean {
    return this.queue.isIdle && this.alone === 0;
  }

  /** Never rejects. */
  private async flush(batch: Pending[]): Promise<void> {
    if (batch.length === 1) return this.flushAlone(batch[0] as Pending);
    const sorted = [...batch].sort((a, b) => (a.append.runId < b.append.runId ? -1 : 1));
    const landed = await this.flushTogether(sorted);
    for (const [index, pending] of sorted.entries()) {
      if (landed.has(index)) pending.resolve();
      // Not awaited: rows that somebody holds must not stall the flushes of the others.
      else void this.flushAlone(pending);
    }
  }

  private async flushTogether(batch: readonly Pending[]): Promise<ReadonlySet<number>> {
    const appends = batch.map(({ append }) => append);
    try {
      return await this.connections.use('append', (batch[0] as Pending).deadline, (connection) =>
        this.driver.appendMany(connection, appends),
      );
    } catch {
      // Whatever it was, each one's own try tells.
      return new Set();
    }
  }

  private async flushAlone({ append, deadline, resolve, reject }: Pending): Promise<void> {
    this.alone += 1;
    try {
      await repeat('append', this.connections, deadline, () =>
        this.connections.use('append', deadline, (connection) => appendFenced(this.driver, connection, append)),
      );
      resolve();
    } catch (error) {
      reject(error);
    } finally {
      this.alone -= 1;
    }
  }
}

/** In order of submission, at most one row of a run, so that its rows cannot land out of order. */
function divide(waiting: readonly Pending[]): { batch: Pending[]; left: Pending[] } {
  const batch: Pending[] = [];
  const left: Pending[] = [];
  const runs = new Set<string>();
  let bytes = 0;
  for (const pending of waiting) {
    const { runId, entries, isNext } = pending.append;
    const fits = batch.length < MAX_ROWS && (batch.length === 0 || bytes + entries.length <= MAX_BYTES);
    const isAlone = batch[0]?.append.isNext === false;
    if (fits && !isAlone && !runs.has(runId) && (isNext || batch.length === 0)) {
      batch.push(pending);
      runs.add(runId);
      bytes += entries.length;
    } else {
      left.push(pending);
    }
  }
  return { batch, left };
}

/** Appends one row under its fence on a given connection, also inside a transaction. @throws FencedError, SequenceConflictError, DatabaseFailure */
export async function appendFenced(
  driver: Pick<PooledDriver, 'appendOne' | 'dialect'>,
  connection: DriverConnection,
  append: PreparedAppend,
): Promise<void> {
  const { dialect } = driver;
  if (append.count === 0 || (!append.isNext && !(await isPlaceNext(driver, connection, append)))) {
    return runProgram(connection, explainAppend(dialect, append));
  }
  const { changes } = await connection.execute(driver.appendOne(append));
  if (changes !== 1) await runProgram(connection, explainAppend(dialect, append));
}

async function isPlaceNext(
  { dialect }: Pick<PooledDriver, 'dialect'>,
  connection: DriverConnection,
  { runId, firstSequence }: PreparedAppend,
): Promise<boolean> {
  // A plain read: the journal has one writer while its run is running, and it is us (decision 3).
  const { rows } = await connection.execute({
    sql: `SELECT first_sequence, entry_count FROM ${dialect.tables.journal} WHERE run_id = ? ORDER BY first_sequence DESC LIMIT 1`,
    params: [runId],
    writes: false,
  });
  const last = rows[0];
  return (last ? Number(last['first_sequence']) + Number(last['entry_count']) : 1) === firstSequence;
}
