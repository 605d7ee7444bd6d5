import type { AgentDefinition, InstructionsContext } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { RunRecord } from '../../contracts/run.js';
import type { EnginePorts } from '../engine-ports.js';
import type { RunState } from '../journal/run-state.js';
import { isBlankText } from '../../contracts/blank-text.js';
import { isLargerThan } from '../values/json-text-size.js';
import { recordedError, recordedFailure } from '../values/recorded-error.js';
import type { ModelFailure } from './read-reply.js';
import { timedCall } from './timed-call.js';

/** How long a function of instructions may take. */
const INSTRUCTIONS_TIMEOUT_MS = 30_000;

/**
 * The instructions of a run: the agent's text, or what its function returned for this run. A function is evaluated once; its result is durable before the
 * model sees it, so that every later request and process uses the same.
 * @param record makes entries durable
 */
export async function instructionsOf(
  { instructions, name, version }: AgentDefinition,
  run: RunRecord,
  state: RunState,
  ports: Pick<EnginePorts, 'clock' | 'options' | 'scope'>,
  record: (entries: JournalEntry[]) => Promise<void>,
): Promise<string | ModelFailure> {
  const { clock, options } = ports;
  if (typeof instructions === 'string') return instructions;
  if (state.instructions !== null) return state.instructions;
  const result = await timedCall({ ports, runId: run.id }, INSTRUCTIONS_TIMEOUT_MS, new AbortController(), async () =>
    instructions(contextOf(run, state)),
  );
  const told = `The function of instructions of agent ${name}@${version}`;
  if (result.ended === 'timed_out') return failed(`${told} did not return within ${INSTRUCTIONS_TIMEOUT_MS} ms.`);
  if (result.ended === 'threw')
    return failed(`${told} threw: ${recordedError(result.error, 'INSTRUCTIONS_FAILED').message}`);
  const text: unknown = result.value;
  if (typeof text !== 'string' || isBlankText(text)) return failed(`${told} returned no text.`);
  if (isLargerThan(JSON.stringify(text), options.maxPayloadBytes))
    return failed(`${told} returned more bytes than maxPayloadBytes (${options.maxPayloadBytes}) allows.`);
  await record([{ type: 'instructions.evaluated', at: clock.now(), instructions: text }]);
  return text;
}

function failed(message: string): ModelFailure {
  return { failure: recordedFailure('INSTRUCTIONS_FAILED', message, { retryable: false }) };
}

function contextOf(
  { id, agent, version, sessionId, actor, metadata }: RunRecord,
  { input }: RunState,
): InstructionsContext {
  const texts = input.flatMap((message) => (message.role === 'user' ? message.content : []));
  const prompt = texts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  return structuredClone({ agent, version, runId: id, sessionId, prompt, messages: input, actor, metadata });
}
