/** `nestjs-agent-runs/file`: runs in a directory, for one process. */
export { AgentRunsFileModule } from './module/file/agent-runs-file.module.js';
export type { AgentRunsFileOptions } from './module/file/agent-runs-file.module.js';
export { FileRunStore } from './stores/file/file-run.store.js';
export type { FileRunStoreOptions } from './stores/file/file-run.store.js';
