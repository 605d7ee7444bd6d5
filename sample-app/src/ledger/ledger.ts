/** Kinds of entries: what happens outside. */
export type LedgerKind = 'refunds' | 'emails' | 'charges' | 'shipments' | 'closings';

export interface Order {
  id: string;
  customer: string;
  email: string;
  amountCents: number;
}

/** The outside world of the support desk: orders, and effects that cannot be taken back. */
export abstract class Ledger {
  /** @throws LedgerError when there is no such order */
  abstract order(orderId: string, signal: AbortSignal): Promise<Order>;

  /**
   * Makes something happen. Refunds and closings honour the key: the same one again has no second effect. The others do not.
   * @param key goes out as `Idempotency-Key`
   * @throws LedgerError
   */
  abstract record(kind: LedgerKind, key: string, details: object, signal: AbortSignal): Promise<unknown>;

  /** What was charged under a key; null when nothing was. @throws LedgerError when that cannot be said */
  abstract findCharge(key: string, signal: AbortSignal): Promise<unknown>;
}

/** The ledger refused or could not be reached. The model is told this message. */
export class LedgerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LedgerError';
  }
}
