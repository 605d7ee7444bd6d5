// Applications over the same stored runs, one after the other: what a restart or a deploy is to them.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DynamicModule, type INestApplicationContext, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import { AgentRunsTypeOrmModule } from '../../lib/module/typeorm/agent-runs-typeorm.module.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { bootHost, type HostOptions, quiet } from './nest-host.js';

export class StoredRuns {
  private readonly open = new Set<INestApplicationContext>();

  constructor(
    private readonly modules: () => DynamicModule[],
    private readonly remove: () => Promise<void>,
  ) {}

  /** A fresh application; its worker looks for runs all the time. */
  async boot({ runs, imports = [], ...options }: HostOptions): Promise<INestApplicationContext> {
    const app = await bootHost({
      ...options,
      imports: [...imports, ...this.modules()],
      runs: { ...quiet, pollInterval: 20, ...runs },
    });
    this.open.add(app);
    return app;
  }

  async close(app: INestApplicationContext): Promise<void> {
    this.open.delete(app);
    await app.close();
  }

  async dispose(): Promise<void> {
    for (const app of [...this.open]) await this.close(app);
    await this.remove();
  }
}

function memory(): Promise<StoredRuns> {
  const store = new MemoryRunStore();
  @Module({})
  class StoreModule {}
  const module: DynamicModule = {
    module: StoreModule,
    global: true,
    providers: [{ provide: RunStore, useValue: store }],
    exports: [RunStore],
  };
  return Promise.resolve(
    new StoredRuns(
      () => [module],
      () => Promise.resolve(),
    ),
  );
}

async function sqlite(): Promise<StoredRuns> {
  const directory = await mkdtemp(join(tmpdir(), 'agent-runs-host-'));
  const database = join(directory, 'app.sqlite');
  return new StoredRuns(
    () => [
      TypeOrmModule.forRoot({ type: 'better-sqlite3', database, enableWAL: true }),
      AgentRunsTypeOrmModule.forRoot({ migrate: true }),
    ],
    () => rm(directory, { recursive: true, force: true }),
  );
}

/** The stores that suites with whole applications run on. */
export const HOST_STORES: readonly { name: string; create: () => Promise<StoredRuns> }[] = [
  { name: 'memory', create: memory },
  { name: 'SQLite', create: sqlite },
];
