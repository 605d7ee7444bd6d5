import type { OperationView, RunSnapshot } from '../contracts/run-view.js';

/** An operation without content, which is left to the transcript. */
export type OperationSummary = Omit<OperationView, 'output'>;

export function presentSnapshot({ run, operations, cursor }: RunSnapshot) {
  return { run, operations: operations.map(({ output: _content, ...rest }): OperationSummary => rest), cursor };
}
