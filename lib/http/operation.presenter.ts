import type { Operation } from '../contracts/operation.js';
import type { RunSnapshot } from '../contracts/run-view.js';

/** An operation in JSON: points in time are ISO 8601, content is left to the transcript. */
export type OperationJson = Omit<Operation, 'startedAt' | 'finishedAt' | 'output'> & {
  startedAt?: string;
  finishedAt?: string;
};

export function presentSnapshot({ run, operations, cursor }: RunSnapshot) {
  return { run, operations: operations.map(presentOperation), cursor };
}

function presentOperation({ output: _content, startedAt, finishedAt, ...rest }: Operation): OperationJson {
  return {
    ...rest,
    ...(startedAt === null ? {} : { startedAt: new Date(startedAt).toISOString() }),
    ...(finishedAt === null ? {} : { finishedAt: new Date(finishedAt).toISOString() }),
  };
}
