/**
 * A program is what a store does in one transaction, written once for every database: a generator that yields statements and is given their rows. SQLite
 * runs it in one synchronous turn, the others with an await between statements. It has no I/O of its own, so running it again from the start after a lost
 * race or a deadlock is always right: everything it knows, it reads again.
 */

export type SqlValue = string | number | null;

/** A row by column name, as the driver gives it: numbers may come as text. */
export type Row = Record<string, unknown>;

export interface Statement {
  readonly sql: string;
  /** In the order of the `?` placeholders. */
  readonly params: readonly SqlValue[];
  /** Changes rows; a program that has not written yet can be refused without taking anything back. */
  readonly writes: boolean;
  /** Counts 0 instead of failing where a key is taken; for databases that say so by an error which leaves their transaction usable. */
  readonly ignoreTaken?: true;
  /** Its form for several programs at once. Without one, programs that share a transaction run it one after the other. */
  readonly shared?: BatchedStatement | undefined;
}

/**
 * One statement in place of the same one of several programs that share a transaction, see `batch-sql.ts`. A query tells whose a row is by its `place`; a program
 * that gets no row from it leaves the others and runs alone, where the statement for one has the whole answer. So a row that somebody holds is left out, and
 * nobody waits for it in company.
 */
export interface BatchedStatement {
  readonly sql: string;
  /** No row is an answer as well: the program goes on with none instead of running alone. */
  readonly orNone?: true;
}

export interface Answer {
  /** Empty for a statement that writes. */
  readonly rows: readonly Row[];
  /** Rows that a writing statement matched. */
  readonly changes: number;
}

export type Program<T> = Generator<Statement, T, Answer>;

/** All rows of a query. */
export function* query(
  sql: string,
  params: readonly SqlValue[] = [],
  shared?: BatchedStatement,
): Program<readonly Row[]> {
  return (yield { sql, params, writes: false, shared }).rows;
}

/** The first row of a query, or undefined. */
export function* queryOne(
  sql: string,
  params: readonly SqlValue[] = [],
  shared?: BatchedStatement,
): Program<Row | undefined> {
  return (yield { sql, params, writes: false, shared }).rows[0];
}

/** Runs a writing statement. @returns how many rows it matched */
export function* write(sql: string, params: readonly SqlValue[], shared?: BatchedStatement): Program<number> {
  return (yield { sql, params, writes: true, shared }).changes;
}

/** Runs an INSERT made by `Dialect.insertIgnore`. @returns false where a key was taken */
export function* insertIgnore(sql: string, params: readonly SqlValue[], shared?: BatchedStatement): Program<boolean> {
  return (yield { sql, params, writes: true, ignoreTaken: true, shared }).changes === 1;
}

/** What executes one statement: a connection, or TypeORM itself. */
export interface StatementRunner {
  execute(statement: Statement): Promise<Answer>;
}

/** Runs a program on one connection, one statement after the other. */
export async function runProgram<T>(connection: StatementRunner, program: Program<T>): Promise<T> {
  let step = program.next();
  while (!step.done) {
    let answer: Answer;
    try {
      answer = await connection.execute(step.value);
    } catch (error) {
      step = program.throw(error);
      continue;
    }
    step = program.next(answer);
  }
  return step.value;
}
