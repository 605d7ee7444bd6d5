/**
 * Transactions of different runs share one of the database: its BEGIN and COMMIT, and each statement that they have in common. A run alone never
 * waits for company. What the group cannot do at once, it does not do: a run whose row somebody holds, one that another member touches too, and everything
 * after a failure goes alone, where waiting, repeating and the error are its own. The group waits for nobody but, briefly, for a key that somebody is
 * inserting; so groups cannot deadlock with each other, with single transactions, or with heartbeats.
 */
import { forCaller } from '../database-failure.js';
import type { OwnTransaction } from '../run-database.js';
import { BatchQueue } from './batch-queue.js';
import type { Connections, Deadline } from './connections.js';
import { inTransaction, type OwnTransactions, type Unanswered } from './own-transactions.js';
import type { PooledDriver } from './pooled-driver.js';
import { runTogether, type Outcome } from './run-together.js';

const MAX_MEMBERS = 128;

interface Member {
  readonly transaction: OwnTransaction<unknown>;
  readonly touches: readonly string[];
  readonly deadline: Deadline;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/** What became of a group: whether its outcomes are committed; where that is unknown, what they would be. */
type Fate = { committed: Outcome<unknown>[] } | { unknown: Outcome<unknown>[] } | 'nothing';

export class SharedTransactions {
  private readonly queue: BatchQueue<Member>;
  /** What groups on their way touch. */
  private readonly touched = new Set<string>();
  private alone = 0;

  constructor(
    private readonly driver: PooledDriver,
    private readonly connections: Connections,
    private readonly own: OwnTransactions,
  ) {
    this.queue = new BatchQueue({
      maxBatches: driver.maxBatches,
      divide: (waiting) => this.divide(waiting),
      send: (batch) => this.send(batch),
    });
  }

  write<T>(transaction: OwnTransaction<T>, touches: readonly string[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const deadline = this.connections.deadline();
      this.queue.add({ transaction: transaction as OwnTransaction<unknown>, touches, deadline, resolve, reject });
    });
  }

  get isIdle(): boolean {
    return this.queue.isIdle && this.alone === 0;
  }

  private divide(waiting: readonly Member[]): { batch: Member[]; left: Member[] } {
    const batch: Member[] = [];
    for (const member of waiting.slice(0, MAX_MEMBERS)) {
      if (member.touches.some((name) => this.touched.has(name))) {
        void this.goAlone(member);
        continue;
      }
      batch.push(member);
      for (const name of member.touches) this.touched.add(name);
    }
    return { batch, left: waiting.slice(MAX_MEMBERS) };
  }

  private async send(batch: readonly Member[]): Promise<void> {
    if (batch.length === 1) {
      // The statements for one are cheaper.
      await this.goAlone(batch[0] as Member);
      this.letGo(batch);
      return;
    }
    // In the order of the run ids, which come first: rows are locked in it.
    const members = [...batch].sort((a, b) => ((a.touches[0] as string) < (b.touches[0] as string) ? -1 : 1));
    const fate = await this.transact(members);
    this.letGo(members);
    for (const [index, member] of members.entries()) this.settle(member, index, fate);
  }

  private letGo(members: readonly Member[]): void {
    for (const { touches } of members) for (const name of touches) this.touched.delete(name);
  }

  private settle(member: Member, index: number, fate: Fate): void {
    const outcome = fate === 'nothing' ? 'alone' : ('committed' in fate ? fate.committed : fate.unknown)[index];
    if (outcome === 'alone' || outcome === undefined) void this.goAlone(member);
    else if (fate !== 'nothing' && 'unknown' in fate)
      void this.goAlone(member, 'value' in outcome ? outcome : undefined);
    else if ('value' in outcome) member.resolve(outcome.value as never);
    else member.reject(forCaller(outcome.error, member.transaction.doing));
  }

  private async transact(members: readonly Member[]): Promise<Fate> {
    let sent: Outcome<unknown>[] | undefined;
    try {
      const { transaction, deadline } = earliest(members);
      const ended = await this.connections.use(transaction.doing, deadline, (connection) =>
        inTransaction(
          connection,
          this.driver.beginShared,
          () =>
            runTogether(
              connection,
              members.map((member) => member.transaction.program()),
            ),
          (outcomes) => (sent = outcomes),
        ),
      );
      return 'committed' in ended ? ended : { unknown: ended.value };
    } catch {
      // Whatever it was, each one's own try tells.
      return sent ? { unknown: sent } : 'nothing';
    }
  }

  private async goAlone(member: Member, unanswered?: Unanswered<unknown>): Promise<void> {
    this.alone += 1;
    try {
      member.resolve((await this.own.write(member.transaction, member.deadline, unanswered)) as never);
    } catch (error) {
      member.reject(error);
    } finally {
      this.alone -= 1;
    }
  }
}

function earliest(members: readonly Member[]): Member {
  return members.reduce((first, member) => (member.deadline < first.deadline ? member : first));
}
