/** Runs a program through TypeORM itself, for migrations that a host runs: there, its logger and its transaction are wanted. */
import type { QueryRunner } from 'typeorm';
import type { Dialect } from './dialect.js';
import type { Answer, Program, Row, Statement } from './program.js';

export async function runOnQueryRunner<T>(queryRunner: QueryRunner, dialect: Dialect, program: Program<T>): Promise<T> {
  let step = program.next();
  while (!step.done) step = program.next(await execute(queryRunner, dialect, step.value));
  return step.value;
}

async function execute(
  queryRunner: QueryRunner,
  dialect: Dialect,
  { sql, params, writes }: Statement,
): Promise<Answer> {
  const result: unknown = await queryRunner.query(dialect.placed(sql), [...params]);
  return writes ? { rows: [], changes: 0 } : { rows: result as Row[], changes: 0 };
}
