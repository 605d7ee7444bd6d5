import { Injectable } from '@nestjs/common';
import { Ledger, LedgerError, type LedgerKind, type Order } from './ledger.js';

/** A ledger somewhere else, over HTTP. */
@Injectable()
export class HttpLedger extends Ledger {
  constructor(private readonly baseUrl: string) {
    super();
  }

  async order(orderId: string, signal: AbortSignal): Promise<Order> {
    return (await this.send('GET', `/orders/${encodeURIComponent(orderId)}`, signal)) as Order;
  }

  async record(kind: LedgerKind, key: string, details: object, signal: AbortSignal): Promise<unknown> {
    return this.send('POST', `/${kind}`, signal, { key, details });
  }

  async findCharge(key: string, signal: AbortSignal): Promise<unknown> {
    return this.send('GET', `/charges/${encodeURIComponent(key)}`, signal, undefined, 404);
  }

  /** @param nothing a status that stands for null */
  private async send(
    method: string,
    path: string,
    signal: AbortSignal,
    entry?: { key: string; details: object },
    nothing?: number,
  ): Promise<unknown> {
    const response = await this.request(method, path, signal, entry);
    if (response.status === nothing) return null;
    if (!response.ok) throw new LedgerError(`The ledger answered ${method} ${path} with status ${response.status}.`);
    return response.json().catch(() => {
      throw new LedgerError(`The ledger answered ${method} ${path} with something that is no JSON.`);
    });
  }

  private async request(
    method: string,
    path: string,
    signal: AbortSignal,
    entry?: { key: string; details: object },
  ): Promise<Response> {
    try {
      return await fetch(this.baseUrl + path, {
        method,
        signal,
        ...(entry && {
          headers: { 'content-type': 'application/json', 'idempotency-key': entry.key },
          body: JSON.stringify(entry.details),
        }),
      });
    } catch (error) {
      if (signal.aborted) throw error;
      throw new LedgerError(`The ledger could not be reached for ${method} ${path}.`);
    }
  }
}
