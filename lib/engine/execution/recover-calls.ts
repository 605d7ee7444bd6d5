import { readAnswer } from '../../contracts/ports/host.port.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { OperationInterruption } from '../../contracts/operation.js';
import type { ProbeResult } from '../../contracts/ports/tool-caller.port.js';
import type { ToolDefinition } from '../../contracts/agent-definition.js';
import type { CallState } from '../journal/run-state.js';
import { decideRecovery } from '../recovery-decision.js';
import { timedCall } from '../timed-call.js';
import type { StopSwitch } from '../stop-switch.js';
import { normaliseResult } from '../values/normalise-result.js';
import { thrownStack } from '../values/recorded-error.js';
import type { Attempt } from './attempt.js';
import { uncertainCall } from './call-entries.js';

/** How long a probe may take whose tool has no timeout: it only looks. */
const PROBE_TIMEOUT_MS = 60_000;

interface Recovery {
  entries: JournalEntry[];
  /** To be asked about; each counts as in flight until its probe has answered. */
  probes: { tool: ToolDefinition; call: CallState }[];
}

/**
 * What a claim finds begun and without a result, each call by its policy. Calls that are to run again are made ready in
 * the state.
 */
export function recoverCalls(attempt: Attempt): Recovery {
  const at = attempt.ports.clock.now();
  const recovery: Recovery = { entries: [], probes: [] };
  for (const call of attempt.state.calls) {
    if (call.status !== 'started') continue;
    const tool = attempt.toolOf(call);
    const decision = decideRecovery({
      stored: call.recovery ?? 'manual',
      current: tool?.recovery ?? null,
      interruptedBy: 'crash',
      attempts: call.attempts,
    });
    // Begun again by the next action, with an intent of its own: the journal goes on saying `started` until then.
    if (decision === 'repeat' || decision === 'error') call.status = 'ready';
    else if (decision === 'probe' && tool) recovery.probes.push({ tool, call });
    else recovery.entries.push(uncertainCall(call, at, 'crash', { reportedToModel: decision === 'inform' }));
  }
  return recovery;
}

/**
 * Asks the tool's probe about a call whose outcome is unknown; a probe that throws, hangs or answers nonsense does not
 * know.
 */
export async function probeCall(
  attempt: Attempt,
  tool: ToolDefinition,
  call: CallState,
  interruptedBy: OperationInterruption,
  controller: StopSwitch,
): Promise<JournalEntry[]> {
  const { ports, run } = attempt;
  const probe = async () =>
    tool.caller.probe?.({
      runId: run.id,
      operationId: `${run.id}/${call.key}`,
      arguments: structuredClone(call.input),
      attempt: call.attempts,
      actor: run.actor,
      signal: controller.signal,
    });
  const place = { ports, runId: run.id };
  const asked = await timedCall(place, tool.timeoutMs ?? PROBE_TIMEOUT_MS, probe, controller);
  // Aborted by ourselves: that is no answer, and the next owner asks again.
  if (asked.ended === 'threw' && controller.isAborted) return [];
  const at = ports.clock.now();
  const { key } = call;
  const answer = asked.ended === 'returned' ? readProbeResult(asked.value) : null;
  if (asked.ended === 'threw')
    attempt.warn('a probe failed; the outcome stays unknown', call, { stack: thrownStack(asked.error) });
  else if (asked.ended === 'returned' && !answer)
    attempt.warn('a probe gave no answer that is one; the outcome stays unknown', call);
  if (answer?.result === 'did-not-happen') return [{ type: 'tool.probed', at, key, result: answer.result }];
  if (answer?.result === 'happened') {
    const output = normaliseResult(answer.output, { maxBytes: ports.options.maxPayloadBytes });
    if (output.ok && tool.caller.checkOutput(output.value).length === 0)
      return [{ type: 'tool.probed', at, key, result: answer.result, output: output.value }];
    attempt.warn('a probe gave a result that does not fit; the outcome stays unknown', call);
  }
  return [{ type: 'tool.probed', at, key, result: 'unknown' }, uncertainCall(call, at, interruptedBy)];
}

/** Null for an answer that is none: the outcome is unknown then. */
function readProbeResult(answer: unknown): ProbeResult | null {
  const isWord = (word: unknown): boolean => word === 'happened' || word === 'did-not-happen' || word === 'unknown';
  const read = readAnswer<{ result: string; output: unknown }>(answer, { result: isWord, output: () => true });
  // With an output exactly where something happened.
  return read && Object.hasOwn(read, 'output') === (read.result === 'happened') ? (read as ProbeResult) : null;
}
