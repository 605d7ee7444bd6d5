import type { MigrationInterface, QueryRunner } from 'typeorm';
import { dialectOf } from '../database-of.js';
import { type DatabaseType, type Dialect, schemaOf } from '../dialect.js';
import { type Answer, type Program, type Row, runProgram, type Statement } from '../program.js';
import { TABLES } from '../tables.js';
import { migrateSchema, SCHEMA_STEPS } from './migrate-schema.js';

/**
 * Classes for the `migrations` of a data source, one for each version of the schema, for hosts that migrate everything
 * with TypeORM's runner. They run the same steps as the store does by itself with `migrate: true`, so either may come
 * first. Reverting the first one drops all runs.
 */
export function agentRunsMigrations(type: DatabaseType): (new () => MigrationInterface)[] {
  return SCHEMA_STEPS.map((step, index) => {
    const upToHere = SCHEMA_STEPS.slice(0, index + 1);
    return class AgentRunsMigration implements MigrationInterface {
      readonly name = `AgentRunsSchema${step.version}${step.timestamp}`;

      async up(queryRunner: QueryRunner): Promise<void> {
        const dialect = dialectOf(type, schemaOf(queryRunner.connection));
        await runOnQueryRunner(queryRunner, dialect, migrateSchema(dialect, upToHere));
      }

      async down(queryRunner: QueryRunner): Promise<void> {
        if (index > 0) throw new Error(`Schema version ${step.version} of the agent run tables cannot be reverted.`);
        const { qualify } = dialectOf(type, schemaOf(queryRunner.connection));
        for (const { table } of TABLES) await queryRunner.query(`DROP TABLE IF EXISTS ${qualify(table)}`);
      }
    };
  });
}

/** Runs a program through TypeORM itself, for migrations that a host runs: there, its logger and its transaction are wanted. */
export async function runOnQueryRunner<T>(queryRunner: QueryRunner, dialect: Dialect, program: Program<T>): Promise<T> {
  return runProgram({ execute: (statement) => execute(queryRunner, dialect, statement) }, program);
}

async function execute(
  queryRunner: QueryRunner,
  dialect: Dialect,
  { sql, params, writes }: Statement,
): Promise<Answer> {
  const result: unknown = await queryRunner.query(dialect.bind(sql), [...params]);
  return writes ? { rows: [], changes: 0 } : { rows: result as Row[], changes: 0 };
}
