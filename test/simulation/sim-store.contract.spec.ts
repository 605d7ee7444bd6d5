import { coreCases, sharedCases } from '../../packages/contract/lib/index.js';
import { runContract } from '../contract/run-contract.js';
import { SimDatabase, type Isolation } from './sim-database.js';
import { FaultTable, SimProcess } from './sim-process.js';
import { SimStore } from './sim-store.js';
import { World } from './world.js';

// The world turns by itself while a case runs: whatever is asked happens in virtual time, and no faster than promises settle.
function factory(isolation: Isolation) {
  return () => {
    const world = new World('contract');
    const database = new SimDatabase(world, isolation);
    let isOver = false;
    const turn = (): void => {
      if (isOver) return;
      void world.run(() => false).then(() => setImmediate(turn));
    };
    turn();
    const open = () => new SimStore(database, new SimProcess(world, 'p', new FaultTable([])));
    return Promise.resolve({
      store: open(),
      reopen: () => Promise.resolve(open()),
      second: () => Promise.resolve(open()),
      advance: (ms: number) => void (world.time += ms),
      dispose: () => {
        isOver = true;
        return Promise.resolve();
      },
    });
  };
}

runContract('SimStore at READ COMMITTED', factory('read committed'), [...coreCases, ...sharedCases]);
runContract('SimStore with a single writer', factory('single writer'), [...coreCases, ...sharedCases]);
