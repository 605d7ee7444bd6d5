import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { databaseOptions } from '../../sample-app/src/database/database.options.js';
import { DatabaseLedger } from '../../sample-app/src/ledger/database.ledger.js';
import { LedgerEntry } from '../../sample-app/src/ledger/ledger-entry.entity.js';
import { OrderNote } from '../../sample-app/src/notes/order-note.entity.js';
import { Ticket } from '../../sample-app/src/tickets/ticket.entity.js';

describe('The sample’s database on SQLite', () => {
  let directory: string;
  let source: DataSource;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'sample-database-'));
    const {
      autoLoadEntities: _,
      retryAttempts: __,
      retryDelay: ___,
      ...options
    } = databaseOptions({
      type: 'sqlite',
      file: join(directory, 'not/there/yet.sqlite'),
    });
    source = await new DataSource({
      ...options,
      entities: [LedgerEntry, OrderNote, Ticket],
    } as DataSourceOptions).initialize();
  });
  afterAll(async () => {
    await source.destroy();
    rmSync(directory, { recursive: true });
  });

  it('is as durable as SQLite can be, in a directory of its own', async () => {
    expect(await source.query('PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect(await source.query('PRAGMA synchronous')).toEqual([{ synchronous: 2 }]);
  });

  it('is what its entities say: a generated migration would be empty', async () => {
    const { upQueries } = await source.driver.createSchemaBuilder().log();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });

  it('the built-in ledger honours the key of a refund, and of nothing else', async () => {
    const ledger = new DatabaseLedger(source.getRepository(LedgerEntry));
    const refunds = await Promise.all([1, 2, 3].map(() => ledger.record('refunds', 'run/k1', { amountCents: 5 })));
    expect(new Set(refunds.map((refund) => (refund as { id: string }).id)).size).toBe(1);
    expect(refunds[0]).toMatchObject({ amountCents: 5 });
    expect(await ledger.findCharge('run/k1')).toBeNull();
    await ledger.record('charges', 'run/k1', { amountCents: 7 });
    await ledger.record('charges', 'run/k1', { amountCents: 7 });
    expect(await ledger.findCharge('run/k1')).toMatchObject({ amountCents: 7 });
    expect(await source.manager.countBy(LedgerEntry, { kind: 'refunds' })).toBe(1);
    expect(await source.manager.countBy(LedgerEntry, { kind: 'charges' })).toBe(2);
  });

  it('its orders are made up from their number', async () => {
    const ledger = new DatabaseLedger(source.getRepository(LedgerEntry));
    const order = await ledger.order('o-17');
    expect(order).toEqual(await ledger.order('o-17'));
    expect(order).toMatchObject({ id: 'o-17', customer: expect.any(String), amountCents: expect.any(Number) });
    await expect(ledger.order('17')).rejects.toThrow('There is no order 17');
  });
});
