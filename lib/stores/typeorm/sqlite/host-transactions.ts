import type { DataSource, EntitySubscriberInterface } from 'typeorm';

const FIRST_LOOK_MS = 1;
const LAST_LOOK_MS = 50;

/**
 * Tells when the host's transaction on the shared connection is over: by TypeORM's events where the host uses TypeORM for it, by looking again where it does
 * not. A commit event alone says nothing, since TypeORM also sends it when only a savepoint was released; the connection itself is asked.
 */
export class HostTransactions {
  private readonly subscriber: EntitySubscriberInterface = {
    afterTransactionCommit: () => this.look(),
    afterTransactionRollback: () => this.look(),
  };
  private readonly waiting = new Set<() => void>();
  private timer: NodeJS.Timeout | undefined;
  private lookAfterMs = FIRST_LOOK_MS;

  constructor(
    private readonly dataSource: DataSource,
    /** Whether the connection is in a transaction. */
    private readonly isOpen: () => boolean,
  ) {}

  /**
   * Calls back once, as soon as no transaction is open; in the very turn of the host's commit or rollback where TypeORM tells of it, so that a host which
   * begins the next one right away leaves a gap. The same callback given twice is called once.
   */
  whenOver(callback: () => void): void {
    this.subscribe();
    this.waiting.add(callback);
    this.timer ??= setTimeout(() => this.lookAgain(), this.lookAfterMs);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting.clear();
    const subscribers = this.dataSource.subscribers;
    const place = subscribers.indexOf(this.subscriber);
    if (place >= 0) subscribers.splice(place, 1);
  }

  /** Again each time: a data source that was initialised again has forgotten its subscribers. */
  subscribe(): void {
    const subscribers = this.dataSource.subscribers;
    if (!subscribers.includes(this.subscriber)) subscribers.push(this.subscriber);
  }

  private lookAgain(): void {
    this.timer = undefined;
    this.lookAfterMs = Math.min(this.lookAfterMs * 2, LAST_LOOK_MS);
    this.look();
    if (this.waiting.size > 0) this.timer ??= setTimeout(() => this.lookAgain(), this.lookAfterMs);
  }

  private look(): void {
    if (this.waiting.size === 0 || this.isOpen()) return;
    this.lookAfterMs = FIRST_LOOK_MS;
    clearTimeout(this.timer);
    this.timer = undefined;
    const callbacks = [...this.waiting];
    this.waiting.clear();
    for (const callback of callbacks) callback();
  }
}
