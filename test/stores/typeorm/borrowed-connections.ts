// Where TypeORM's driver hands a connection of its pool to the store.
import type { DataSource } from 'typeorm';
import type { ServerType } from './server-subject.js';

/** A connection of pg or of mysql2. */
type Connection = Record<string, (...args: unknown[]) => unknown>;

/** Calls `use` with every connection that is borrowed from now on, before the borrower has it. */
export function onBorrowed(dataSource: DataSource, use: (connection: Connection) => unknown): void {
  const driver = dataSource.driver as unknown as { obtainMasterConnection(): Promise<unknown> };
  const obtain = driver.obtainMasterConnection.bind(driver);
  driver.obtainMasterConnection = async () => {
    const obtained = await obtain();
    // Postgres gives the client with the function that takes it back.
    await use((Array.isArray(obtained) ? obtained[0] : obtained) as Connection);
    return obtained;
  };
}

/** The isolation of a host that has set another one for its sessions. */
export function isolateSessions(dataSource: DataSource, type: ServerType, isolation: string): void {
  onBorrowed(dataSource, (connection) =>
    type === 'postgres'
      ? connection['query']?.(`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL ${isolation}`)
      : new Promise((done) => connection['query']?.(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`, done)),
  );
}
