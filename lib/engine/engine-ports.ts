import type { AgentCatalog } from '../contracts/ports/agent-catalog.port.js';
import type { ApprovalResolver } from '../contracts/ports/approval-resolver.port.js';
import type { Clock } from '../contracts/ports/clock.port.js';
import type { Digester } from '../contracts/ports/digester.port.js';
import type { EngineLog } from '../contracts/ports/engine-log.port.js';
import type { InputGuardrail } from '../contracts/ports/input-guardrail.port.js';
import type { IdSource } from '../contracts/ports/id-source.port.js';
import type { RunScope } from '../contracts/ports/run-scope.port.js';
import type { RunObserver } from '../contracts/ports/run-observer.port.js';
import type { RunStore } from '../contracts/ports/run-store.port.js';
import type { EngineOptions } from './engine-options.js';

/** Everything the engine is given from outside. Time, ids, chance and the store come in here and nowhere else. */
export interface EnginePorts {
  store: RunStore;
  catalog: AgentCatalog;
  clock: Clock;
  ids: IdSource;
  digester: Digester;
  scope: RunScope;
  log: EngineLog;
  /** Called in order; failures are logged. Filled at boot, read at each event. */
  observers: readonly RunObserver[];
  /** Null = nothing is screened. */
  guardrail: InputGuardrail | null;
  /** Decides approvals in the moment; null = people do. */
  approvalResolver: ApprovalResolver | null;
  options: EngineOptions;
  /** Awaited before a run is accepted, where the application is not up yet; null once it is. */
  beforeStart: (() => Promise<void>) | null;
}
