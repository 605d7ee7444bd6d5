// What a store sends to its database, taken where its driver hands out connections: the very texts and values, so that the database can be asked about them.
import type { DataSource } from 'typeorm';
import { onBorrowed } from '../borrowed-connections.js';

export interface RecordedStatement {
  sql: string;
  values: unknown[];
}

interface Sent {
  sql?: string;
  text?: string;
  values?: unknown[];
}

/** BEGIN, COMMIT and their kind: nothing a database makes a plan for. */
const CONTROL = /^\s*(?:BEGIN|START|SET (?!STATEMENT)|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|DO)\b/i;

export class StatementRecorder {
  private statements: RecordedStatement[] | undefined;

  private constructor() {}

  /** Listens on every connection that the store borrows from now on. */
  static on(dataSource: DataSource): StatementRecorder {
    const recorder = new StatementRecorder();
    const heard = new WeakSet<object>();
    onBorrowed(dataSource, (connection) => {
      if (heard.has(connection)) return;
      heard.add(connection);
      recorder.listen(connection);
    });
    return recorder;
  }

  /** What was sent while `work` ran. */
  async during(work: () => Promise<unknown>): Promise<RecordedStatement[]> {
    const statements: RecordedStatement[] = [];
    this.statements = statements;
    try {
      await work();
    } finally {
      this.statements = undefined;
    }
    return statements.filter(({ sql }) => !CONTROL.test(sql));
  }

  private listen(connection: Record<string, (...args: unknown[]) => unknown>): void {
    for (const name of ['execute', 'query'] as const) {
      const original = connection[name];
      if (!original) continue;
      connection[name] = (...args) => {
        const sent = args[0] as Sent | string;
        const statement: Sent = typeof sent === 'string' ? { sql: sent } : sent;
        this.statements?.push({ sql: statement.sql ?? statement.text ?? '', values: [...(statement.values ?? [])] });
        return original.apply(connection, args);
      };
    }
  }
}
