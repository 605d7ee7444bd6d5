import { coreCases, sharedCases } from '../../packages/contract/lib/index.js';
import type { StoreFactory } from '../../packages/contract/lib/store-case.js';
import { SqliteSubject } from '../stores/typeorm/sqlite-subject.js';
import { runContract } from './run-contract.js';

function factory(enableWAL: boolean): StoreFactory {
  return async () => {
    const subject = await SqliteSubject.create();
    let current = await subject.open({}, { enableWAL });
    return {
      store: current.store,
      reopen: async () => {
        await subject.close(current);
        current = await subject.open({}, { enableWAL });
        return current.store;
      },
      second: async () => (await subject.open({}, { enableWAL })).store,
      dispose: () => subject.dispose(),
    };
  };
}

runContract('TypeOrmRunStore on SQLite (WAL)', factory(true), [...coreCases, ...sharedCases]);
// Readers and writers get in each other's way there: COMMIT may find the file busy.
runContract('TypeOrmRunStore on SQLite (rollback journal)', factory(false), sharedCases);
