import type { LifecycleEvent, RunObserver } from '../contracts/ports/host.port.js';
import { redacted } from './redacted.js';

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
