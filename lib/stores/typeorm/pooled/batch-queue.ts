/**
 * What is handed in together goes to the database together: one event-loop turn after the first of it, and while others are on their way everything that has
 * come meanwhile. So nobody waits for company, and company is found when there is much to do. A batch that stands still, because somebody holds what it needs,
 * does not keep the next ones waiting.
 */

/** How long a batch may take before another one is sent beside it. */
const PATIENCE_MS = 100;

export interface BatchQueueHooks<T> {
  /** Batches on their way at once: the next one is made up while the database commits the first. */
  maxBatches: number;
  /** Divides what waits, in order of arrival, into the next batch and the rest, which is less than before. */
  divide(waiting: T[]): { batch: T[]; left: T[] };
  /** Never rejects. */
  send(batch: T[]): Promise<void>;
}

export class BatchQueue<T> {
  private waiting: T[] = [];
  /** Those that others wait for. */
  private batches = 0;
  private unsettled = 0;
  private isScheduled = false;

  constructor(private readonly hooks: BatchQueueHooks<T>) {}

  add(item: T): void {
    this.waiting.push(item);
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.pump();
    });
  }

  /** Nothing waits, and no batch is on its way. */
  get isIdle(): boolean {
    return this.waiting.length === 0 && this.unsettled === 0;
  }

  private pump(): void {
    while (this.batches < this.hooks.maxBatches && this.waiting.length > 0) {
      const { batch, left } = this.hooks.divide(this.waiting);
      this.waiting = left;
      if (batch.length === 0) continue;
      this.dispatch(batch);
    }
  }

  private dispatch(batch: T[]): void {
    this.unsettled += 1;
    this.batches += 1;
    let isCounted = true;
    const uncount = (): void => {
      if (!isCounted) return;
      isCounted = false;
      this.batches -= 1;
      this.pump();
    };
    const timer = setTimeout(uncount, PATIENCE_MS);
    void this.hooks.send(batch).finally(() => {
      clearTimeout(timer);
      this.unsettled -= 1;
      uncount();
    });
  }
}
