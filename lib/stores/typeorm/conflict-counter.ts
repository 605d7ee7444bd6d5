/** Counts how often concurrent transactions got in each other's way, for operators: each of these was repeated, and cost its caller time. */
import { DatabaseFailure } from './database-failure.js';
import { LostRaceError } from './lost-race.error.js';

export class ConflictCounter {
  private readonly counts = new Map<string, number>();

  /** Counts an error that is a conflict; any other is none of its business. */
  count(error: unknown): void {
    if (error instanceof LostRaceError) this.add('LOST_RACE');
    else if (error instanceof DatabaseFailure && error.verdict === 'conflict') this.add(error.databaseCode);
  }

  read(): Record<string, number> {
    return Object.fromEntries(this.counts);
  }

  private add(code: string): void {
    this.counts.set(code, (this.counts.get(code) ?? 0) + 1);
  }
}
