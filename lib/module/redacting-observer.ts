import { channel } from 'node:diagnostics_channel';
import type { LifecycleEvent, RunObserver } from '../contracts/ports/host.port.js';

/** Hands events on with the values of the configured keys replaced. */
export class RedactingObserver implements RunObserver {
  constructor(
    private readonly observer: RunObserver,
    private readonly keys: readonly string[],
  ) {}

  onEvent(event: LifecycleEvent): void | Promise<void> {
    return this.observer.onEvent({ ...event, details: redacted(event.details, this.keys) });
  }
}

/** A copy with the values of the named keys replaced; the object itself where there is nothing to replace. */
export function redacted<T extends Record<string, unknown>>(fields: T, keys: readonly string[]): T {
  if (!keys.some((key) => Object.hasOwn(fields, key))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, keys.includes(key) ? '[redacted]' : value]),
  ) as T;
}

/** Publishes lifecycle entries to `diagnostics_channel` as `agent-runs:<type>`. Costs nothing while nobody listens. */
export class DiagnosticsChannelObserver implements RunObserver {
  onEvent(event: LifecycleEvent): void {
    const listeners = channel(`agent-runs:${event.type}`);
    if (listeners.hasSubscribers) listeners.publish(event);
  }
}
