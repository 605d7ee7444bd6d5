import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileRunStore } from '../../lib/stores/file/file-run.store.js';
import { runContract } from './run-contract.js';

runContract('FileRunStore', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'agent-runs-'));
  let current = new FileRunStore({ directory });
  await current.open();
  return {
    store: current,
    reopen: async () => {
      await current.close();
      current = new FileRunStore({ directory });
      await current.open();
      return current;
    },
    dispose: async () => {
      await current.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
});
