/**
 * What the host's own code says about a call before it is begun: whether its arguments are valid, and whether a person must decide. Host code gets
 * copies, so that it cannot rewrite what was said, and its failure is an answer: of a validator a refusal, of a rule the demand for a person. A validator
 * that hangs would hold back the reply that was paid for: the tool's timeout ends the wait, and the tool is never begun.
 */
import type { ApprovalVerdict } from '../../contracts/journal-entry.js';
import type { JsonObject } from '../../contracts/json.js';
import type { ParsedArguments, ToolCaller } from '../../contracts/ports/tool-caller.port.js';
import type { ToolDefinition } from '../../contracts/tool-definition.js';
import type { EnginePorts } from '../engine-ports.js';
import { argumentsProblem } from '../values/json-domain.js';
import { firstProblems } from '../values/problem-text.js';
import { thrownName, thrownStack } from '../values/thrown-stack.js';
import { timedCall } from './timed-call.js';

type JudgePorts = Pick<EnginePorts, 'clock' | 'log' | 'scope'>;
type LogFields = { runId: string; operation: string };

export type ParsedCall = ParsedArguments | { ok: false; problems: string[]; timedOut: true };

/** @param fields of the log line about a validator or rule that throws: `runId`, `operation` */
export async function parseCall(
  ports: JudgePorts,
  tool: ToolDefinition,
  args: JsonObject,
  fields: LogFields,
): Promise<ParsedCall> {
  const refused = argumentsProblem(args);
  if (refused !== null) return { ok: false, problems: [refused] };
  const parsed = await timedCall({ ports, runId: fields.runId }, tool.timeoutMs, new AbortController(), () =>
    tool.caller.parse(structuredClone(args)),
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

/** Null when nobody needs to decide. */
export async function approvalOf(
  ports: JudgePorts,
  tool: ToolDefinition,
  input: JsonObject,
  call: Parameters<ToolCaller['approval']>[1],
  fields: LogFields,
): Promise<ApprovalVerdict | null> {
  const asked = await timedCall({ ports, runId: call.runId }, null, new AbortController(), () =>
    tool.caller.approval(structuredClone(input), call),
  );
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
