/** Publishes lifecycle entries to `diagnostics_channel` as `agent-runs:<type>`. Costs nothing while nobody listens. */
import { channel } from 'node:diagnostics_channel';
import type { LifecycleEvent, RunObserver } from '../contracts/ports/host.port.js';

export class DiagnosticsChannelObserver implements RunObserver {
  onEvent(event: LifecycleEvent): void {
    const listeners = channel(`agent-runs:${event.type}`);
    if (listeners.hasSubscribers) listeners.publish(event);
  }
}
