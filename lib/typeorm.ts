/**
 * Runs in the host's own database.
 * @module nestjs-agent-runs/typeorm
 */

export { AgentRunsTypeOrmModule } from './module/typeorm/agent-runs-typeorm.module.js';
export type { AgentRunsTypeOrmOptions } from './module/typeorm/agent-runs-typeorm.module.js';
export type { StartContext, ToolContext } from './module/typeorm/agent-runs-typeorm.module.js';
export { TypeOrmRunStore } from './stores/typeorm/typeorm-run.store.js';
export type { TypeOrmRunStoreOptions } from './stores/typeorm/typeorm-run.store.js';
export { agentRunsEntities } from './stores/typeorm/agent-runs-entities.js';
export { agentRunsMigrations } from './stores/typeorm/migrations/agent-runs-migrations.js';
export type { DatabaseType } from './stores/typeorm/dialect.js';
