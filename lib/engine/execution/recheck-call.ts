/**
 * The gate right before an effect: the arguments as they were given are read once more by the schema of this process, unless it was this process that read
 * them. A deploy between an approval and its call, or between a crash and the repetition, must not execute what today's schema refuses or reads otherwise.
 */
import type { JournalEntry, ToolUncertain } from '../../contracts/journal-entry.js';
import type { JsonObject } from '../../contracts/json.js';
import type { ToolDefinition } from '../../contracts/tool-definition.js';
import type { EnginePorts } from '../engine-ports.js';
import type { CallState } from '../journal/run-state.js';
import { recordedFailure, recordedText } from '../values/recorded-error.js';
import { parseCall } from './validate-call.js';

/** Inputs that this process has read, by which tool. Weak: an input lives as long as the state of its run. */
const readHere = new WeakMap<JsonObject, ToolDefinition>();

export function markRead(tool: ToolDefinition, input: JsonObject): void {
  readHere.set(input, tool);
}

/** Whether an execution before the one that is under way may have had an effect. What ran in a transaction has none: it was rolled back. */
export function mayHaveBegun({ openAttempts, methodInteractions, steps, recovery }: CallState): boolean {
  return recovery !== 'transactional' && (openAttempts > 1 || methodInteractions.length > 0 || steps.size > 0);
}

/** A refusal before the method is entered is the call's result, unless an earlier execution may have had its effect: then nobody may say that it had none. */
export function unlessBegun(call: CallState, refusal: JournalEntry & { at: number }, why: string): JournalEntry {
  if (call.recovery === 'safe' || !mayHaveBegun(call)) return refusal;
  return uncertain(call, refusal.at, `it was interrupted, and its repetition was refused: ${why}`, true);
}

/**
 * @param isCut whether an execution of the call was interrupted and may have had its effect
 * @returns the end of a call that must not go on; null when it may
 */
export async function recheckCall(
  ports: Pick<EnginePorts, 'clock' | 'digester' | 'log' | 'scope'>,
  runId: string,
  tool: ToolDefinition,
  call: CallState,
  isCut: boolean,
): Promise<JournalEntry | null> {
  if (readHere.get(call.input) === tool) return null;
  const { clock, digester } = ports;
  const parsed = await parseCall(ports, tool, call.given, { runId, operation: call.key });
  const at = clock.now();
  if (parsed.ok) {
    if (digester.canonical(parsed.input) !== digester.canonical(call.input))
      return uncertain(
        call,
        at,
        'the schema of this process reads its arguments otherwise than was recorded',
        isCut,
        true,
      );
    markRead(tool, call.input);
    return null;
  }
  const problems = parsed.problems.join('; ');
  if (isCut) return uncertain(call, at, `the schema of this process refuses its arguments: ${problems}`, true);
  const error =
    'timedOut' in parsed
      ? recordedFailure('TOOL_TIMED_OUT', `The tool was not run: ${problems}.`)
      : recordedFailure('INVALID_ARGUMENTS', `The arguments are not valid: ${problems}`);
  return {
    type: 'tool.failed',
    at,
    key: call.key,
    outcome: 'timedOut' in parsed ? 'error' : 'invalid_arguments',
    error,
  };
}

function uncertain(call: CallState, at: number, problem: string, isCut: boolean, isDrift = false): ToolUncertain {
  return {
    type: 'tool.uncertain',
    at,
    key: call.key,
    // A method that asked was left, not cut.
    interruptedBy: isCut && call.methodInteractions.length === 0 ? 'crash' : null,
    reportedToModel: false,
    problem: recordedText(problem),
    ...(isDrift && { reason: 'input_drift' }),
  };
}
