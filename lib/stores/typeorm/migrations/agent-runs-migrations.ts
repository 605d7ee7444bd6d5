/** The schema steps as TypeORM migrations, for hosts that migrate everything with TypeORM's runner. */
import type { MigrationInterface, QueryRunner } from 'typeorm';
import type { DatabaseType } from '../dialect.js';
import { dialectOf } from '../dialect-of.js';
import { TABLES } from '../entities/table-definitions.js';
import { runOnQueryRunner } from '../run-on-query-runner.js';
import { schemaOf } from '../schema-of.js';
import { migrateSchema } from './migrate-schema.js';
import { SCHEMA_STEPS } from './schema-steps.js';

/**
 * Classes for the `migrations` of a data source, one for each version of the schema. They run the same steps as the store does by itself with `migrate: true`,
 * so either may come first. Reverting the first one drops all runs.
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
