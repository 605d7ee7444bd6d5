/** The host's transaction as it comes in through the port, where it is opaque: a TypeORM EntityManager inside an open transaction of our data source. */
import type { DataSource, QueryRunner } from 'typeorm';
import { InvalidRequestError } from '../../errors/request.errors.js';
import { unwrapped } from './tool-manager.js';

/** @throws InvalidRequestError for anything else, and for a manager of another data source */
export function queryRunnerOf(transaction: unknown, dataSource: DataSource): QueryRunner {
  const manager = transaction as { queryRunner?: QueryRunner } | null | undefined;
  const queryRunner = typeof manager === 'object' && manager !== null ? manager.queryRunner : undefined;
  if (!queryRunner) {
    throw new InvalidRequestError(
      '`transaction` must be the EntityManager that TypeORM gives to the callback of `dataSource.transaction()`, or `queryRunner.manager` after `startTransaction()`.',
    );
  }
  // TypeORM before 1.0 names it `connection`.
  const owner = (queryRunner as { dataSource?: DataSource }).dataSource ?? queryRunner.connection;
  if (owner !== dataSource) {
    throw new InvalidRequestError(
      '`transaction` belongs to another data source than the store. Use a transaction of the data source the store was given.',
    );
  }
  if (!queryRunner.isTransactionActive) {
    throw new InvalidRequestError(
      '`transaction` is not open: its transaction has not begun or is over. Await `start` inside the callback of the transaction.',
    );
  }
  return unwrapped(queryRunner);
}
