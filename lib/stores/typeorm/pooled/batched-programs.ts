import { BatchAborted, LostRaceError } from '../database-failure.js';
import type { Answer, Program, Row, BatchedStatement, Statement } from '../program.js';
import { encodeRows } from '../batch-sql.js';
import { type BatchOutcome, MAX_STATEMENT_SIZE } from './group-commit.js';
import type { DriverConnection } from './pooled-driver.js';

/**
 * Runs several programs in one transaction, in step: where several have come to the same statement, its form for many
 * runs once. A program whose row somebody holds leaves before it has written anything, and so does one that fails until
 * then; what fails later aborts the batch.
 * @returns the outcomes, in the order of the programs
 * @throws BatchAborted, DatabaseFailure: nothing may be committed then
 */
export async function runBatched<T>(
  connection: Pick<DriverConnection, 'execute'>,
  programs: readonly Program<T>[],
): Promise<BatchOutcome<T>[]> {
  const cursors = programs.map((program) => new ProgramCursor(program));
  for (let groups = grouped(cursors); groups.size > 0; groups = grouped(cursors)) {
    for (const group of groups.values()) await advance(connection, group);
  }
  return cursors.map(({ outcome }) => outcome as BatchOutcome<T>);
}

/** Programs that stand at the same statement. */
function grouped<T>(cursors: readonly ProgramCursor<T>[]): Map<string, ProgramCursor<T>[]> {
  const groups = new Map<string, ProgramCursor<T>[]>();
  for (const cursor of cursors) {
    if (!cursor.statement) continue;
    const { sql } = cursor.statement;
    const group = groups.get(sql);
    if (group) group.push(cursor);
    else groups.set(sql, [cursor]);
  }
  return groups;
}

async function advance<T>(
  connection: Pick<DriverConnection, 'execute'>,
  group: readonly ProgramCursor<T>[],
): Promise<void> {
  const { shared } = (group[0] as ProgramCursor<T>).statement as Statement;
  if (shared) for (const part of parts(group)) await advanceAsOne(connection, part, shared);
  else for (const cursor of group) cursor.take(await connection.execute(cursor.statement as Statement));
}

/** No more in one statement than servers take in one packet. */
function parts<T>(group: readonly ProgramCursor<T>[]): ProgramCursor<T>[][] {
  const all: ProgramCursor<T>[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const cursor of group) {
    const its = sizeOf(cursor.statement as Statement);
    if (size + its > MAX_STATEMENT_SIZE) {
      all.push([]);
      size = 0;
    }
    size += its;
    (all.at(-1) as ProgramCursor<T>[]).push(cursor);
  }
  return all;
}

function sizeOf({ params }: Statement): number {
  return params.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}

async function advanceAsOne<T>(
  connection: Pick<DriverConnection, 'execute'>,
  group: readonly ProgramCursor<T>[],
  { sql, orNone }: BatchedStatement,
): Promise<void> {
  const statements = group.map(({ statement }) => statement as Statement);
  const { writes, ignoreTaken } = statements[0] as Statement;
  const params = [encodeRows(statements.map((statement) => statement.params))];
  const { rows, changes } = await connection.execute({ sql, params, writes, ...(ignoreTaken && { ignoreTaken }) });
  if (writes) {
    // Whose row it was that did not change, nobody says.
    if (changes !== group.length)
      throw new BatchAborted(`${group.length - changes} of ${group.length} rows are missing.`);
    for (const cursor of group) cursor.take({ rows: [], changes: 1 });
    return;
  }
  const byPlace = new Map<number, Row[]>();
  for (const row of rows) {
    const place = Number(row['place']);
    const its = byPlace.get(place);
    if (its) its.push(row);
    else byPlace.set(place, [row]);
  }
  for (const [place, cursor] of group.entries()) {
    const its = byPlace.get(place);
    if (its || orNone) cursor.take({ rows: its ?? [], changes: 0 });
    else cursor.leave();
  }
}

/** One program on its way. */
class ProgramCursor<T> {
  /** What it waits for; undefined when it is through. */
  statement: Statement | undefined;
  outcome: BatchOutcome<T> | undefined;
  private hasWritten = false;

  constructor(private readonly program: Program<T>) {
    this.go(() => program.next());
  }

  take(answer: Answer): void {
    this.hasWritten ||= this.statement?.writes ?? false;
    this.go(() => this.program.next(answer));
  }

  leave(): void {
    if (this.hasWritten) throw new BatchAborted('A program that has written cannot leave.');
    this.statement = undefined;
    this.outcome = { individually: true };
  }

  private go(on: () => IteratorResult<Statement, T>): void {
    try {
      const step = on();
      this.statement = step.done ? undefined : step.value;
      if (step.done) this.outcome = { value: step.value };
    } catch (error) {
      if (this.hasWritten) throw new BatchAborted('A program failed after it had written.', { cause: error });
      this.statement = undefined;
      this.outcome = error instanceof LostRaceError ? { individually: true } : { error };
    }
  }
}
