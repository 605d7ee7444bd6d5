/**
 * A scripted model, a store in memory, and a store that stops a run at any commit, for any test runner.
 * @module nestjs-agent-runs/testing
 */

export { ScriptedModel, scriptedModel } from './model/scripted/scripted-model.js';
export type { RecordedRequest, ScriptedModelOptions } from './model/scripted/scripted-model.js';
export type {
  Scripted,
  ScriptedCall,
  ScriptedFailure,
  ScriptedPlace,
  ScriptedStep,
} from './model/scripted/script-step.js';
export { promptScript } from './model/scripted/script-step.js';
export type { PromptScript } from './model/scripted/script-step.js';
export { TRANSCRIPT_CHECKS } from './model/scripted/transcript-problems.js';
export type { TranscriptCheck } from './model/scripted/transcript-problems.js';
export { AgentRunsMemoryModule } from './module/memory/agent-runs-memory.module.js';
export { MemoryRunStore } from './stores/memory/memory-run.store.js';
export type { MemoryRunStoreOptions } from './stores/memory/memory-run.store.js';
export { CrashExplorer } from './testing/crash-explorer.store.js';
export type { CommitHooks, StoreCommit } from './testing/crash-explorer.store.js';
