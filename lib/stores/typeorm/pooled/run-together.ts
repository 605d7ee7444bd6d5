/**
 * Runs several programs in one transaction, in step: where all of them, or some, have come to the same statement, its form for many runs once. A program whose
 * row somebody holds leaves before it has written anything, and so does one that fails until then; what fails later spoils the transaction for all.
 */
import { LostRaceError } from '../database-failure.js';
import type { Answer, Program, Row, SharedStatement, Statement } from '../program.js';
import { packed } from '../sharing.js';
import type { DriverConnection } from './pooled-driver.js';

/** Characters of text in one statement. */
const MAX_SIZE = 1_000_000;

/** What a program came to. `alone`: it left, has written nothing, and has to run by itself. */
export type Outcome<T> = { value: T } | { error: unknown } | 'alone';

/** The transaction holds part of the writes of a program that failed; it must be rolled back. */
export class SpoiledError extends Error {
  override readonly name = 'SpoiledError';
}

/** @returns the outcomes, in the order of the programs. @throws SpoiledError, DatabaseFailure: nothing may be committed then */
export async function runTogether<T>(
  connection: Pick<DriverConnection, 'execute'>,
  programs: readonly Program<T>[],
): Promise<Outcome<T>[]> {
  const lanes = programs.map((program) => new Lane(program));
  for (let groups = grouped(lanes); groups.size > 0; groups = grouped(lanes)) {
    for (const group of groups.values()) await advance(connection, group);
  }
  return lanes.map(({ outcome }) => outcome as Outcome<T>);
}

/** Programs that stand at the same statement. */
function grouped<T>(lanes: readonly Lane<T>[]): Map<string, Lane<T>[]> {
  const groups = new Map<string, Lane<T>[]>();
  for (const lane of lanes) {
    if (!lane.statement) continue;
    const { sql } = lane.statement;
    const group = groups.get(sql);
    if (group) group.push(lane);
    else groups.set(sql, [lane]);
  }
  return groups;
}

async function advance<T>(connection: Pick<DriverConnection, 'execute'>, group: readonly Lane<T>[]): Promise<void> {
  const { shared } = (group[0] as Lane<T>).statement as Statement;
  if (shared) for (const part of parts(group)) await advanceAsOne(connection, part, shared);
  else for (const lane of group) lane.take(await connection.execute(lane.statement as Statement));
}

/** No more in one statement than servers take in one packet. */
function parts<T>(group: readonly Lane<T>[]): Lane<T>[][] {
  const all: Lane<T>[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const lane of group) {
    const its = sizeOf(lane.statement as Statement);
    if (size + its > MAX_SIZE) {
      all.push([]);
      size = 0;
    }
    size += its;
    (all.at(-1) as Lane<T>[]).push(lane);
  }
  return all;
}

function sizeOf({ params }: Statement): number {
  return params.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}

async function advanceAsOne<T>(
  connection: Pick<DriverConnection, 'execute'>,
  group: readonly Lane<T>[],
  { sql, orNone }: SharedStatement,
): Promise<void> {
  const statements = group.map(({ statement }) => statement as Statement);
  const { writes, orLeave } = statements[0] as Statement;
  const params = [packed(statements.map((statement) => statement.params))];
  const { rows, changes } = await connection.execute({ sql, params, writes, ...(orLeave && { orLeave }) });
  if (writes) {
    // Whose row it was that did not change, nobody says.
    if (changes !== group.length)
      throw new SpoiledError(`${group.length - changes} of ${group.length} rows are missing.`);
    for (const lane of group) lane.take({ rows: [], changes: 1 });
    return;
  }
  const byPlace = new Map<number, Row[]>();
  for (const row of rows) {
    const place = Number(row['place']);
    const its = byPlace.get(place);
    if (its) its.push(row);
    else byPlace.set(place, [row]);
  }
  for (const [place, lane] of group.entries()) {
    const its = byPlace.get(place);
    if (its || orNone) lane.take({ rows: its ?? [], changes: 0 });
    else lane.leave();
  }
}

/** One program on its way. */
class Lane<T> {
  /** What it waits for; undefined when it is through. */
  statement: Statement | undefined;
  outcome: Outcome<T> | undefined;
  private hasWritten = false;

  constructor(private readonly program: Program<T>) {
    this.go(() => program.next());
  }

  take(answer: Answer): void {
    this.hasWritten ||= this.statement?.writes ?? false;
    this.go(() => this.program.next(answer));
  }

  leave(): void {
    if (this.hasWritten) throw new SpoiledError('A program that has written cannot leave.');
    this.statement = undefined;
    this.outcome = 'alone';
  }

  private go(on: () => IteratorResult<Statement, T>): void {
    try {
      const step = on();
      this.statement = step.done ? undefined : step.value;
      if (step.done) this.outcome = { value: step.value };
    } catch (error) {
      if (this.hasWritten) throw new SpoiledError('A program failed after it had written.', { cause: error });
      this.statement = undefined;
      this.outcome = error instanceof LostRaceError ? 'alone' : { error };
    }
  }
}
