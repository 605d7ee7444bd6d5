// Several application processes over one store, killed and started again, and people who answer. At the end every run of a world is checked to be sound.
import { afterEach } from '@jest/globals';
import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import type { InteractionView, Run } from '../../lib/contracts/run-view.js';
import type { RunStatus } from '../../lib/contracts/run-status.js';
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import type { EngineOptions, EnginePorts } from '../../lib/engine/engine-ports.js';
import { engineOver, type TestEngine } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { assertSound } from '../support/sound-journal.js';
import type { EngineStore, SharedStore } from '../support/stores.js';
import { until } from '../support/until.js';

export interface Process extends TestEngine {
  store: FailingStore;
}

type Options = Partial<EngineOptions>;
type Ports = Partial<EnginePorts>;

// For the file that imports this one.
afterEach(() => World.abandon(), 60_000);

/** A decision by a person. */
export const approve = { decision: 'approve', by: 'ann' } as const;
export const deny = { decision: 'deny', by: 'bob', note: 'too much' } as const;

export class World {
  private static readonly open = new Set<World>();
  private readonly processes: Process[] = [];

  private constructor(private readonly shared: SharedStore) {}

  static async over(store: EngineStore): Promise<World> {
    const world = new World(await store.open());
    World.open.add(world);
    return world;
  }

  /** Worlds whose test failed before their end. */
  static async abandon(): Promise<void> {
    for (const world of World.open) {
      World.open.delete(world);
      await world.stop();
      await world.shared.dispose();
    }
  }

  /** The first process over the store. */
  process(agents: AgentDefinition | AgentDefinition[], options: Options = {}, ports: Ports = {}): Promise<Process> {
    return this.begin(this.shared.store, agents, options, ports);
  }

  /** One more living process, with a connection of its own. */
  async another(
    agents: AgentDefinition | AgentDefinition[],
    options: Options = {},
    ports: Ports = {},
  ): Promise<Process> {
    return this.begin(await this.shared.second(), agents, options, ports);
  }

  /** A process that starts and answers, and executes nothing (CFG-4). */
  office(agents: AgentDefinition | AgentDefinition[], options: Options = {}): Promise<Process> {
    return this.another(agents, { worker: false, ...options });
  }

  /** kill -9: what it was doing is never answered, and nobody stops it. */
  kill(process: Process): void {
    process.store.kill();
    process.forget();
    this.processes.splice(this.processes.indexOf(process), 1);
  }

  /** Everything stops in an orderly way and the store is opened anew. */
  async restart(
    agents: AgentDefinition | AgentDefinition[],
    options: Options = {},
    ports: Ports = {},
  ): Promise<Process> {
    await this.stop();
    return this.begin(await this.shared.reopen(), agents, options, ports);
  }

  /** Every run is sound; nothing is left behind. */
  async end(): Promise<void> {
    await this.stop();
    World.open.delete(this);
    const store = await this.shared.second();
    try {
      for (let cursor: string | undefined; ;) {
        const page = await store.list({ limit: 100, ...(cursor !== undefined && { cursor }) });
        for (const { id } of page.items) await assertSound(store, id);
        if (page.nextCursor === undefined) break;
        cursor = page.nextCursor;
      }
    } finally {
      await this.shared.dispose();
    }
  }

  private async stop(): Promise<void> {
    await Promise.all(this.processes.splice(0).map((process) => process.stop()));
  }

  private async begin(
    store: RunStore,
    agents: AgentDefinition | AgentDefinition[],
    options: Options,
    ports: Ports,
  ): Promise<Process> {
    const failing = new FailingStore(store);
    const engine = await engineOver(failing, agents, options, undefined, ports);
    const process: Process = { ...engine, store: failing };
    this.processes.push(process);
    return process;
  }
}

/** The run once it has one of these statuses. */
export async function reaches(process: TestEngine, runId: string, ...statuses: RunStatus[]): Promise<Run> {
  let run: Run | undefined;
  await until(
    async () => {
      run = await process.runs.get(runId);
      if (run.phase === 'settled' && !statuses.includes(run.status))
        throw new Error(`Run ${runId} is ${run.status}, not ${statuses.join(' or ')}: ${JSON.stringify(run.error)}`);
      return statuses.includes(run.status);
    },
    `run ${runId} being ${statuses.join(' or ')}`,
  );
  return run as Run;
}

/** The run's open asks once there are so many, in call order. */
export async function asksOf(process: TestEngine, runId: string, count: number): Promise<InteractionView[]> {
  let open: InteractionView[] = [];
  await until(async () => {
    open = (await process.runs.pendingInteractions({ runId })).interactions;
    return open.length === count;
  }, `${count} open asks of run ${runId}`);
  return open.sort((a, b) => (a.operationKey < b.operationKey ? -1 : 1));
}

/** The code of the error a call is refused with; `accepted` when it is not. */
export function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'accepted',
    (error: unknown) => {
      if (AgentRunsError.is(error)) return error.code;
      throw error;
    },
  );
}
