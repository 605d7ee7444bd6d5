/**
 * Runs in a directory, for one process.
 * @module nestjs-agent-runs/file
 */

export { AgentRunsFileModule } from './module/file/agent-runs-file.module.js';
export type { AgentRunsFileOptions } from './module/file/agent-runs-file.module.js';
export { FileRunStore } from './stores/file/file-run.store.js';
export type { FileRunStoreOptions } from './stores/file/file-run.store.js';
