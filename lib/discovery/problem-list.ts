import { AgentRunsError } from '../errors/agent-runs.error.js';
import type { InvalidConfigurationError } from '../errors/configuration.errors.js';

/** Collects what is wrong, so that a boot fails once and says everything. */
export class ProblemList {
  private readonly found: string[] = [];

  get all(): readonly string[] {
    return this.found;
  }

  add(problem: string): void {
    if (!this.found.includes(problem)) this.found.push(problem);
  }

  /** Runs a check that throws InvalidConfigurationError; undefined when it did. Other errors pass. */
  attempt<T>(check: () => T): T | undefined {
    try {
      return check();
    } catch (error) {
      this.absorb(error);
      return undefined;
    }
  }

  async attemptAsync<T>(check: () => Promise<T>): Promise<T | undefined> {
    try {
      return await check();
    } catch (error) {
      this.absorb(error);
      return undefined;
    }
  }

  private absorb(error: unknown): void {
    if (!AgentRunsError.is(error, 'INVALID_CONFIGURATION')) throw error;
    for (const problem of (error as InvalidConfigurationError).problems) this.add(problem);
  }
}
