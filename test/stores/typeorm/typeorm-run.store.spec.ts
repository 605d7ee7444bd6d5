import { DataSource } from 'typeorm';
import { TypeOrmRunStore } from '../../../lib/stores/typeorm/typeorm-run.store.js';

describe('the store on a data source', () => {
  it('CFG-1: names the databases it knows when it is given another one', () => {
    const dataSource = { options: { type: 'mongodb' } } as unknown as DataSource;
    expect(() => new TypeOrmRunStore(dataSource)).toThrow(
      /of type mongodb.*better-sqlite3, mysql, mariadb or postgres/,
    );
  });

  it('STO-4: is unavailable on a data source that is not initialised', async () => {
    const store = new TypeOrmRunStore(new DataSource({ type: 'better-sqlite3', database: ':memory:' }));
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  it('STO-9: says what it can do', () => {
    const store = new TypeOrmRunStore(new DataSource({ type: 'better-sqlite3', database: 'runs.sqlite' }));
    expect(store.traits).toEqual({
      name: 'typeorm:better-sqlite3',
      durable: true,
      shared: true,
      transactions: true,
      maxCommitBytes: 256 * 1024 * 1024,
    });
  });

  it.each([':memory:', ' :memory: ', ''])('CFG-5: is as forgetful as a SQLite database named %j', (database) => {
    const store = new TypeOrmRunStore(new DataSource({ type: 'better-sqlite3', database }));
    expect(store.traits).toMatchObject({ durable: false, shared: false });
  });
});
