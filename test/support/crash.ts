// A process that is killed: its store answers nothing more and writes nothing more, and its lease is over.
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import type { EngineOptions } from '../../lib/engine/engine-ports.js';
import { engineOver, type TestEngine } from './engine-harness.js';
import { FailingStore } from './failing-store.js';

export interface MortalEngine extends TestEngine {
  /** The process's own connection. */
  connection: FailingStore;
  /** Kill -9, as the others see it once the lease has run out. */
  crash(): Promise<void>;
}

/** An engine over a shared store that can be killed. */
export async function mortalEngine(
  store: RunStore,
  agents: AgentDefinition | AgentDefinition[],
  options: Partial<EngineOptions> = {},
): Promise<MortalEngine> {
  const connection = new FailingStore(store);
  const engine = await engineOver(connection, agents, options);
  return Object.assign(engine, {
    connection,
    crash: async () => {
      connection.kill();
      engine.forget();
      await store.retireWorker(engine.worker.workerId);
    },
  });
}
