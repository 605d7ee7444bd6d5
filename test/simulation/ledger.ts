// What happened outside of the database: which method was entered how often, which effects it had, and what it returned.
export interface Effect {
  /** Of a process that no longer owned the run: what no fence can reach. */
  isZombie: boolean;
}

export class Ledger {
  private readonly entered = new Map<string, number>();
  private readonly effected = new Map<string, Effect[]>();
  private readonly returns = new Map<string, Set<string>>();

  /** @returns how often this method, or step of one, was entered before */
  enter(operation: string): number {
    const before = this.entered.get(operation) ?? 0;
    this.entered.set(operation, before + 1);
    return before;
  }

  entries(operation: string): number {
    return this.entered.get(operation) ?? 0;
  }

  effect(operation: string, isZombie: boolean): void {
    this.effected.set(operation, [...this.effects(operation), { isZombie }]);
  }

  effects(operation: string): readonly Effect[] {
    return this.effected.get(operation) ?? [];
  }

  return(operation: string, output: unknown): void {
    const outputs = this.returns.get(operation) ?? new Set();
    this.returns.set(operation, outputs.add(JSON.stringify(output)));
  }

  hasReturned(operation: string, output: unknown): boolean {
    return this.returns.get(operation)?.has(JSON.stringify(output)) ?? false;
  }
}
