// The store contract's factory on a database server. Called once, at the top of a spec file.
import type { StoreFactory } from '../../../lib/testing/store-contract/store-case.js';
import { ServerSubject, type ServerType } from './server-subject.js';

export function serverFactory(type: ServerType): StoreFactory {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);
  return async () => {
    const subject = await ServerSubject.create(type);
    let current = await subject.open();
    return {
      store: current.store,
      reopen: async () => {
        await subject.close(current);
        current = await subject.open();
        return current.store;
      },
      second: async () => (await subject.open()).store,
      dispose: () => subject.dispose(),
    };
  };
}
