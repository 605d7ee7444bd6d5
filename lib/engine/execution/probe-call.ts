import { readAnswer } from '../../contracts/host-answer.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { ProbeResult } from '../../contracts/ports/tool-caller.port.js';
import type { ToolDefinition } from '../../contracts/tool-definition.js';
import type { CallState } from '../journal/run-state.js';
import { normaliseResult } from '../values/normalise-result.js';
import { thrownStack } from '../values/thrown-stack.js';
import { timedCall } from './timed-call.js';
import type { CallEnvironment } from './tool-call.js';

/** How long a probe may take whose tool has no timeout: it only looks, and a run that waits for it waits for nobody. */
const PROBE_TIMEOUT_MS = 60_000;

/** Asks the tool's probe about a call whose fate is unknown; a probe that throws, hangs or answers nonsense does not know. */
export async function probeCall(
  environment: CallEnvironment,
  tool: ToolDefinition,
  call: CallState,
  interruptedBy: 'crash' | 'timeout',
  controller: AbortController,
): Promise<JournalEntry[]> {
  const { ports, run } = environment;
  const asked = await timedCall({ ports, runId: run.id }, tool.timeoutMs ?? PROBE_TIMEOUT_MS, controller, async () =>
    tool.caller.probe?.({
      runId: run.id,
      operationId: `${run.id}/${call.key}`,
      arguments: structuredClone(call.input),
      attempt: call.attempts,
      actor: run.actor,
      signal: controller.signal,
    }),
  );
  // Told to stop by ourselves: that is no answer, and the next owner asks again.
  if (asked.ended === 'threw' && controller.signal.aborted) return [];
  const at = ports.clock.now();
  const answer = asked.ended === 'returned' ? readProbeResult(asked.value) : null;
  const told = { runId: run.id, operation: call.key, tool: tool.name };
  if (asked.ended === 'threw')
    environment.warn('a probe failed; the outcome stays unknown', { ...told, stack: thrownStack(asked.error) });
  else if (asked.ended === 'returned' && !answer)
    environment.warn('a probe gave no answer that is one; the outcome stays unknown', told);
  if (answer?.result === 'did-not-happen')
    return [{ type: 'tool.probed', at, key: call.key, result: 'did-not-happen' }];
  if (answer?.result === 'happened') {
    const output = normaliseResult(answer.output, { maxBytes: environment.maxPayloadBytes });
    if (output.ok && tool.caller.checkOutput(output.value).length === 0)
      return [{ type: 'tool.probed', at, key: call.key, result: 'happened', output: output.value }];
    environment.warn('a probe gave a result that does not fit; the outcome stays unknown', told);
  }
  return [
    { type: 'tool.probed', at, key: call.key, result: 'unknown' },
    { type: 'tool.uncertain', at, key: call.key, interruptedBy, reportedToModel: false },
  ];
}

/** Null for what is none: then nobody knows. */
function readProbeResult(answer: unknown): ProbeResult | null {
  const isWord = (word: unknown): boolean => word === 'happened' || word === 'did-not-happen' || word === 'unknown';
  const read = readAnswer<{ result: string; output: unknown }>(answer, { result: isWord, output: () => true });
  // With an output exactly where something happened.
  return read && Object.hasOwn(read, 'output') === (read.result === 'happened') ? (read as ProbeResult) : null;
}
