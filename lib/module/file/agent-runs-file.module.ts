import { type DynamicModule, Module } from '@nestjs/common';
import { RunStore } from '../../contracts/ports/run-store.port.js';
import { FileRunStore } from '../../stores/file/file-run.store.js';

/** What `AgentRunsFileModule.forRoot` takes. */
export interface AgentRunsFileOptions {
  /** A directory of its own, created when missing. On a local disk: network file systems keep no locks to rely on. */
  directory: string;
}

/** Keeps runs in a directory, for one process: command line tools and local use. Global. */
@Module({})
export class AgentRunsFileModule {
  /** Without a directory the application does not boot. */
  static forRoot(options: AgentRunsFileOptions): DynamicModule {
    return {
      module: AgentRunsFileModule,
      global: true,
      providers: [{ provide: RunStore, useFactory: () => new FileRunStore({ directory: options.directory }) }],
      exports: [RunStore],
    };
  }
}
