import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { runContract } from './run-contract.js';

runContract('MemoryRunStore on a clock of its own', () => {
  let now = 1_750_000_000_000;
  const store = new MemoryRunStore({ clock: () => now });
  return Promise.resolve({
    store,
    reopen: () => Promise.resolve(store),
    advance: (ms) => void (now += ms),
    dispose: () => store.close(),
  });
});

runContract('MemoryRunStore', () => {
  const store = new MemoryRunStore();
  return Promise.resolve({ store, reopen: () => Promise.resolve(store), dispose: () => store.close() });
});
