// The store contract's factory on a database server. Called once, at the top of a spec file. The options are those of a host's data source.
import type { DataSourceOptions } from 'typeorm';
import type { StoreFactory } from '../../../packages/contract/lib/store-case.js';
import { ServerSubject, type ServerType } from './server-subject.js';

export function serverFactory(type: ServerType, options: Partial<DataSourceOptions> = {}): StoreFactory {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);
  return async () => {
    const subject = await ServerSubject.create(type);
    let current = await subject.open({}, options);
    return {
      store: current.store,
      reopen: async () => {
        await subject.close(current);
        current = await subject.open({}, options);
        return current.store;
      },
      second: async () => (await subject.open({}, options)).store,
      dispose: () => subject.dispose(),
    };
  };
}
