import type { ApprovalVerdict, EntryOf, JournalEntry } from '../../contracts/journal-entry.js';
import { copyJson, isSameJson, type JsonObject } from '../../contracts/json.js';
import type { ParsedArguments, ToolCaller } from '../../contracts/ports/tool-caller.port.js';
import type { ToolDefinition } from '../../contracts/agent-definition.js';
import type { EnginePorts } from '../engine-ports.js';
import type { CallState } from '../journal/run-state.js';
import { timedCall } from '../timed-call.js';
import { argumentsProblem } from '../values/json-domain.js';
import { firstProblems } from '../values/plain-text.js';
import { recordedFailure, thrownName, thrownStack } from '../values/recorded-error.js';
import { failedCall, refusedRepetition } from './call-entries.js';

type ValidationPorts = Pick<EnginePorts, 'clock' | 'log' | 'scope'>;
type LogFields = { runId: string; operation: string };

/** The result of a call that is never executed. */
type CallRefusal = Pick<EntryOf<'tool.failed'>, 'outcome' | 'error'>;
type ParsedCall = ParsedArguments | { ok: false; problems: string[]; timedOut: true };

/**
 * Validates arguments by the schema of a tool. Its validator is host code: it gets a copy, and its failure counts as a refusal. The tool's timeout ends the wait for a validator that hangs, which would hold back a reply that was paid
 * for; the tool is never begun then.
 * @param fields of the log line about a validator that throws
 */
export async function parseCall(
  ports: ValidationPorts,
  tool: ToolDefinition,
  args: JsonObject,
  fields: LogFields,
): Promise<ParsedCall> {
  const refused = argumentsProblem(args);
  if (refused !== null) return { ok: false, problems: [refused] };
  const parsed = await timedCall({ ports, runId: fields.runId }, tool.timeoutMs, () =>
    tool.caller.parse(copyJson(args)),
  );
  switch (parsed.ended) {
    case 'returned':
      return bounded(parsed.value);
    case 'threw':
      ports.log.warn('the check of a call threw; the arguments count as invalid', {
        ...fields,
        tool: tool.name,
        stack: thrownStack(parsed.error),
      });
      // A transformation met a value it was not written for; schemas judge only afterwards.
      return { ok: false, problems: [`the arguments could not be read (${thrownName(parsed.error)})`] };
    case 'timed_out':
      return {
        ok: false,
        problems: [`the check of the arguments did not end within ${tool.timeoutMs} ms`],
        timedOut: true,
      };
  }
}

/** A schema that makes numbers of texts rounds them like any parser. */
function bounded(parsed: ParsedArguments): ParsedArguments {
  if (!parsed.ok) return { ok: false, problems: firstProblems(parsed.problems) };
  const refused = argumentsProblem(parsed.input);
  return refused === null ? parsed : { ok: false, problems: [`as the schema reads it, ${refused}`] };
}

/** Asks the approval rule of a tool; a rule that throws demands a person. Null = no approval is needed. */
export async function approvalOf(
  ports: ValidationPorts,
  tool: ToolDefinition,
  input: JsonObject,
  call: Parameters<ToolCaller['approval']>[1],
  fields: LogFields,
): Promise<ApprovalVerdict | null> {
  const asked = await timedCall({ ports, runId: call.runId }, null, () => tool.caller.approval(copyJson(input), call));
  if (asked.ended === 'returned') return asked.value;
  // Without a limit nothing is late.
  const error = asked.ended === 'threw' ? asked.error : undefined;
  ports.log.warn('an approval rule threw; a person is asked', {
    ...fields,
    tool: tool.name,
    stack: thrownStack(error),
  });
  return { reason: `A person must decide because its approval rule failed (${thrownName(error)}).` };
}

/** Inputs that this process has read, by which tool. Weak: an input lives as long as the state of its run. */
const readHere = new WeakMap<JsonObject, ToolDefinition>();

export function markRead(tool: ToolDefinition, input: JsonObject): void {
  readHere.set(input, tool);
}

/**
 * The gate right before an effect: unless this process has read the arguments, they are read once more by its schema. A
 * deploy between an approval and its call, or between a crash and the repetition, must not execute what today's schema
 * refuses or reads otherwise.
 * @param isInterrupted whether an execution of the call was interrupted and may have had its effect
 * @returns the end of a call that must not go on; null when it may
 */
export async function recheckCall(
  ports: ValidationPorts & Pick<EnginePorts, 'digester'>,
  runId: string,
  tool: ToolDefinition,
  call: CallState,
  isInterrupted: boolean,
): Promise<JournalEntry | null> {
  if (readHere.get(call.input) === tool) return null;
  const parsed = await parseCall(ports, tool, call.given, { runId, operation: call.key });
  const at = ports.clock.now();
  if (parsed.ok) {
    if (!isSameJson(parsed.input, call.input)) {
      const drift = 'the schema of this process reads its arguments otherwise than was recorded';
      return refusedRepetition(call, at, drift, isInterrupted, 'input_drift');
    }
    markRead(tool, call.input);
    return null;
  }
  if (isInterrupted) {
    const refused = `the schema of this process refuses its arguments: ${parsed.problems.join('; ')}`;
    return refusedRepetition(call, at, refused, true);
  }
  const { outcome, error } = invalidCall(parsed);
  return failedCall(call, at, error, outcome);
}

/** What a refusal of the arguments means for the call. */
export function invalidCall(parsed: Extract<ParsedCall, { ok: false }>): CallRefusal {
  const problems = parsed.problems.join('; ');
  return 'timedOut' in parsed
    ? { outcome: 'error', error: recordedFailure('TOOL_TIMED_OUT', `The tool was not run: ${problems}.`) }
    : {
        outcome: 'invalid_arguments',
        error: recordedFailure('INVALID_ARGUMENTS', `The arguments are not valid: ${problems}`),
      };
}
