import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { InvalidRequestError } from '../../errors/request.errors.js';

/**
 * The EntityManager that a `transactional` tool gets as `context.manager`. It stands on the transaction's query runner through a proxy that can be
 * cut: from then on everything obtained through it, repositories and query builders included, fails with one clear error. The proxy also keeps the tool from
 * ending a transaction that is not its own; nested ones (savepoints) are.
 */
const TARGET = Symbol.for('nestjs-agent-runs:query-runner');
/** Statements by which a tool could end the transaction it was given. */
const ENDS_TRANSACTION =
  /^\s*(?:COMMIT|END|ABORT|ROLLBACK(?!\s+(?:TRANSACTION\s+|WORK\s+)?TO\b)|BEGIN|START\s+TRANSACTION)\b/i;

export interface ToolManager {
  readonly manager: EntityManager;
  /** Cuts it. Idempotent. */
  revoke(): void;
}

export function toolManager(dataSource: DataSource, queryRunner: QueryRunner): ToolManager {
  let revoked = false;
  let depth = 0;
  let manager: EntityManager | undefined;
  const own: Record<string, (...args: unknown[]) => unknown> = {
    async startTransaction(...args) {
      await (queryRunner.startTransaction as (...rest: unknown[]) => Promise<void>)(...args);
      depth += 1;
    },
    async commitTransaction() {
      if (depth === 0) throw notYours('commit');
      await queryRunner.commitTransaction();
      depth -= 1;
    },
    async rollbackTransaction() {
      if (depth === 0) throw notYours('roll back');
      await queryRunner.rollbackTransaction();
      depth -= 1;
    },
    async query(...args) {
      if (typeof args[0] === 'string' && ENDS_TRANSACTION.test(args[0])) throw notYours('end or begin by a statement');
      return (queryRunner.query as (...rest: unknown[]) => Promise<unknown>)(...args);
    },
    // It is not the tool's to give back; TypeORM's own callers may ask for it after each query.
    release: () => Promise.resolve(),
  };
  const proxy: QueryRunner = new Proxy(queryRunner, {
    get(target, name) {
      if (revoked) throw isOver();
      if (name === TARGET) return target;
      if (name === 'manager') return manager;
      if (typeof name === 'string' && Object.hasOwn(own, name)) return own[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
    set(target, name, value) {
      if (revoked) throw isOver();
      // The constructor of an EntityManager puts itself here; the runner itself may be the whole host's.
      if (name === 'manager') manager = value as EntityManager;
      else Reflect.set(target, name, value, target);
      return true;
    },
  });
  manager = dataSource.createEntityManager(proxy);
  return {
    manager,
    revoke: () => {
      revoked = true;
    },
  };
}

/** The query runner itself, where it is one of ours in disguise. */
export function unwrapped(queryRunner: QueryRunner): QueryRunner {
  return (queryRunner as { [TARGET]?: QueryRunner })[TARGET] ?? queryRunner;
}

function isOver(): InvalidRequestError {
  return new InvalidRequestError(
    'The `manager` of a transactional tool was used after the tool had ended. Its transaction is over: await every statement inside the method, and keep neither the manager nor its repositories.',
  );
}

function notYours(what: string): InvalidRequestError {
  return new InvalidRequestError(
    `A transactional tool tried to ${what} the transaction it runs in. It is committed with the tool's result when the method returns, and rolled back when it throws.`,
  );
}

/**
 * The host's transaction as it comes in through the port, where it is opaque: a TypeORM EntityManager inside an open
 * transaction of our data source.
 *
 * @throws InvalidRequestError for anything else, and for a manager of another data source
 */
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
