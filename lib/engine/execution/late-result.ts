/**
 * What a call still brings home after its run was cancelled: kept in the journal as evidence, counted nowhere, moving nothing.
 * A run that was taken over or settled otherwise has another truth already; there the late result is only logged.
 */
import type { JournalEntry, OperationLateResult } from '../../contracts/journal-entry.js';
import type { JsonValue } from '../../contracts/json.js';
import type { RunRecord } from '../../contracts/run.js';
import type { EnginePorts } from '../engine-ports.js';
import type { ExecutionHooks } from './attempt.js';
import { untilAnswered } from './until-answered.js';

export async function recordLateResults(
  ports: Pick<EnginePorts, 'store' | 'log' | 'clock' | 'ids'>,
  run: Pick<RunRecord, 'id' | 'attempt'>,
  results: readonly JournalEntry[],
  { onCommitted }: Pick<ExecutionHooks, 'onCommitted'>,
): Promise<void> {
  const late = results.flatMap((entry) => lateResult(entry, run.attempt));
  if (late.length === 0) return;
  // One whose answer was lost may be kept twice, which is better than not at all.
  const answer = await untilAnswered(ports, () =>
    ports.store.transition({
      runId: run.id,
      decide: (locked) =>
        locked.run.status === 'cancelled' && locked.run.attempt === run.attempt
          ? { result: true, run: { change: {}, entries: late } }
          : { result: false },
    }),
  );
  if (answer?.outcome === 'done' && answer.result) onCommitted(answer.run, answer.run.sequence - late.length + 1, late);
  else {
    ports.log.warn('a late result was discarded: the run belongs to another attempt', {
      runId: run.id,
      attempt: run.attempt,
      operations: late.map(({ key }) => key),
    });
  }
}

function lateResult(entry: JournalEntry, attempt: number): OperationLateResult[] {
  switch (entry.type) {
    case 'model.completed':
      return [
        {
          type: 'operation.late_result',
          at: entry.at,
          key: entry.key,
          attempt,
          output: entry.message.content as unknown as JsonValue,
        },
      ];
    case 'tool.completed':
      return [{ type: 'operation.late_result', at: entry.at, key: entry.key, attempt, output: entry.output }];
    case 'tool.failed':
      return [{ type: 'operation.late_result', at: entry.at, key: entry.key, attempt, error: entry.error }];
    default:
      return [];
  }
}
