import { FileSubject } from '../stores/file/file-subject.js';
import { runContract } from './run-contract.js';

runContract('FileRunStore', async () => {
  const subject = await FileSubject.create();
  let current = await subject.open();
  return {
    store: current,
    reopen: async () => {
      await current.close();
      current = await subject.open();
      return current;
    },
    dispose: () => subject.dispose(),
  };
});
