/**
 * Where the journals stand that this process writes, so that an append need not look. Only ever a shortcut: a place is learned from a commit, and if somebody
 * else has appended since, their row begins exactly where ours would, which the primary key refuses. So a stale place cannot open a gap.
 */
import type { RunRecord } from '../../contracts/run.js';
import type { PreparedAppend } from './append-entries.js';

/** More runs than one process has in flight; the oldest are forgotten, which costs them one look. */
const MAX_PLACES = 10_000;

export class KnownPlaces {
  private readonly places = new Map<string, { attempt: number; sequence: number }>();

  /** After a commit of ours that left the run so. */
  learn({ id, status, attempt, sequence }: Pick<RunRecord, 'id' | 'status' | 'attempt' | 'sequence'>): void {
    if (status === 'running') this.put(id, attempt, sequence);
    else this.places.delete(id);
  }

  /** After an append was committed. */
  advance({ runId, attempt, firstSequence, count }: PreparedAppend): void {
    this.put(runId, attempt, firstSequence + count - 1);
  }

  /** After an append failed, for whatever reason. */
  forget(runId: string): void {
    this.places.delete(runId);
  }

  /** Whether the append is known to come next. False = look. */
  isNext({ runId, attempt, firstSequence }: Pick<PreparedAppend, 'runId' | 'attempt' | 'firstSequence'>): boolean {
    const place = this.places.get(runId);
    return place !== undefined && place.attempt === attempt && place.sequence + 1 === firstSequence;
  }

  private put(runId: string, attempt: number, sequence: number): void {
    const place = this.places.get(runId);
    if (place) {
      place.attempt = attempt;
      place.sequence = sequence;
      return;
    }
    if (this.places.size >= MAX_PLACES) {
      const oldest = this.places.keys().next();
      if (!oldest.done) this.places.delete(oldest.value);
    }
    this.places.set(runId, { attempt, sequence });
  }
}
