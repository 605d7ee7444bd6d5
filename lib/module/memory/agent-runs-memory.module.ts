import { type DynamicModule, Module } from '@nestjs/common';
import { RunStore } from '../../contracts/ports/run-store.port.js';
import { MemoryRunStore, type MemoryRunStoreOptions } from '../../stores/memory/memory-run.store.js';

/** Keeps runs in the process, in the place of the module that keeps them in a database: for tests. Global. */
@Module({})
export class AgentRunsMemoryModule {
  /** A new store for each application; what it keeps is gone with it. */
  static forRoot(options: MemoryRunStoreOptions = {}): DynamicModule {
    return {
      module: AgentRunsMemoryModule,
      global: true,
      providers: [{ provide: RunStore, useFactory: () => new MemoryRunStore(options) }],
      exports: [RunStore],
    };
  }
}
