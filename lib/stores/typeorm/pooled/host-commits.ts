import type { DataSource, EntitySubscriberInterface, QueryRunner } from 'typeorm';

interface Untold {
  readonly runId: string;
  readonly callback: () => void;
}

/**
 * Tells when the outermost commit of a host's transaction has made a run visible. TypeORM broadcasts for savepoints too, so its query runner is
 * asked whether a transaction is still open, and the run is looked for: its savepoint may have been rolled back although the transaction was committed.
 */
export class HostCommits {
  private readonly untold = new WeakMap<QueryRunner, Untold[]>();
  private readonly subscriber: EntitySubscriberInterface = {
    afterTransactionCommit: ({ queryRunner }) => this.ended(queryRunner, true),
    afterTransactionRollback: ({ queryRunner }) => this.ended(queryRunner, false),
  };

  constructor(
    private readonly dataSource: DataSource,
    private readonly isThere: (runId: string) => Promise<boolean>,
  ) {}

  after(queryRunner: QueryRunner, runId: string, callback: () => void): void {
    const subscribers = this.subscribers();
    // Again each time: a data source that was initialised again has forgotten its subscribers.
    if (!subscribers.includes(this.subscriber)) subscribers.push(this.subscriber);
    const untold = this.untold.get(queryRunner) ?? [];
    untold.push({ runId, callback });
    this.untold.set(queryRunner, untold);
  }

  stop(): void {
    const subscribers = this.subscribers();
    const place = subscribers.indexOf(this.subscriber);
    if (place >= 0) subscribers.splice(place, 1);
  }

  private ended(queryRunner: QueryRunner, isCommitted: boolean): void {
    if (queryRunner.isTransactionActive) return;
    const untold = this.untold.get(queryRunner);
    this.untold.delete(queryRunner);
    if (!isCommitted) return;
    void this.tell(untold ?? []);
  }

  /** One after the other: in the order in which they were created. */
  private async tell(untold: readonly Untold[]): Promise<void> {
    for (const { runId, callback } of untold) {
      try {
        if (await this.isThere(runId)) callback();
      } catch {
        // It wakes a worker, whose poll finds the run as well.
      }
    }
  }

  private subscribers(): EntitySubscriberInterface[] {
    return this.dataSource.subscribers;
  }
}
