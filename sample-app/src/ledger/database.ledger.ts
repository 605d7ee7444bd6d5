import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { LedgerEntry } from './ledger-entry.entity.js';
import { Ledger, LedgerError, type LedgerKind, type Order } from './ledger.js';

const HONOURS_KEYS: readonly LedgerKind[] = ['refunds', 'closings'];

const CUSTOMERS = [
  { customer: 'Ada Lovelace', email: 'ada@example.com' },
  { customer: 'Grace Hopper', email: 'grace@example.com' },
  { customer: 'Alan Turing', email: 'alan@example.com' },
];

/** The built-in ledger: a table of the application's database, and orders that are made up from their number. */
@Injectable()
export class DatabaseLedger extends Ledger {
  constructor(@InjectRepository(LedgerEntry) private readonly entries: Repository<LedgerEntry>) {
    super();
  }

  async order(orderId: string): Promise<Order> {
    const number = Number(/^o-(\d{1,6})$/.exec(orderId)?.[1]);
    const customer = CUSTOMERS[number % CUSTOMERS.length];
    if (!customer) throw new LedgerError(`There is no order ${orderId}. Order numbers look like o-17.`);
    return { id: orderId, ...customer, amountCents: 2_500 + (number % 40) * 500 };
  }

  async record(kind: LedgerKind, key: string, details: object): Promise<unknown> {
    const id = randomUUID();
    const uniqueKey = HONOURS_KEYS.includes(kind) ? `${kind}:${key}` : id;
    const entry = { id, kind, operationId: key, uniqueKey, details: JSON.stringify(details), createdAt: Date.now() };
    await this.entries.createQueryBuilder().insert().values(entry).orIgnore().updateEntity(false).execute();
    return present(await this.entries.findOneByOrFail({ uniqueKey }));
  }

  async findCharge(key: string): Promise<unknown> {
    const stored = await this.entries.findOneBy({ kind: 'charges', operationId: key });
    return stored && present(stored);
  }
}

const present = ({ id, details }: Pick<LedgerEntry, 'id' | 'details'>) => ({
  id,
  ...(JSON.parse(details) as object),
});
