/** Figures for dashboards and alarms, from bounded queries; no ids, no content. */
import type { RunStore, StoreMetrics } from '../contracts/ports/run-store.port.js';

export class RunMetrics {
  constructor(private readonly store: RunStore) {}

  /** @throws StoreUnavailableError */
  read(): Promise<StoreMetrics> {
    return this.store.metrics();
  }
}
