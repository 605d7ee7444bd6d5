/** Ids and chance of the process (port IdSource). */
import { v7 } from 'uuid';
import type { IdSource } from '../contracts/ports/system.port.js';

export class SystemIdSource implements IdSource {
  /** UUIDv7 (RFC 9562). Ascending as text within a process, even within a millisecond and when the wall clock is set back. */
  id(): string {
    return v7();
  }

  /** For jitter; not for secrets. */
  random(): number {
    return Math.random();
  }
}
