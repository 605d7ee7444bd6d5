import type { InstructionsContext } from '../../contracts/agent-definition.js';
import { isBlankText } from '../../contracts/text.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { ModelReply, ToolChoice } from '../../contracts/ports/model-client.port.js';
import type { ModelState, RunState } from '../journal/run-state.js';
import type { StopSwitch } from '../stop-switch.js';
import { timedCall } from '../timed-call.js';
import { isLargerThan } from '../values/json-domain.js';
import { recordedError, recordedFailure, thrownProperty, thrownStack } from '../values/recorded-error.js';
import type { Attempt } from './attempt.js';
import { readReply, type ModelFailure } from './model-reply.js';
import { transcriptFor } from './provider-transcript.js';

/** How long a function of instructions may take. */
const INSTRUCTIONS_TIMEOUT_MS = 30_000;

/** `aborted`: by ourselves, which is no failure of the provider. */
type ModelOutcome = { reply: ModelReply } | ModelFailure | { aborted: true };

/**
 * Makes exactly one request, once the instructions are known.
 * @throws FencedError, and what else stops the instructions from being recorded
 */
export async function requestModel(attempt: Attempt, controller: StopSwitch): Promise<ModelOutcome> {
  const outcome = await askModel(attempt, controller);
  if ('failure' in outcome) {
    const { failure, thrown } = outcome;
    const { model } = attempt.state;
    attempt.ports.log.warn('a model request failed', {
      runId: attempt.run.id,
      operation: model?.key,
      attempt: model?.attempts,
      model: attempt.agent.modelName,
      code: failure.code,
      status: failure.status,
      retryable: failure.retryable,
      ...(thrown === undefined ? { problem: failure.message } : { stack: thrownStack(thrown) }),
    });
  }
  return outcome;
}

async function askModel(attempt: Attempt, controller: StopSwitch): Promise<ModelOutcome> {
  const { agent, state, ports } = attempt;
  const instructions = await instructionsOf(attempt, controller);
  if (controller.isAborted) return { aborted: true };
  if (typeof instructions !== 'string') return instructions;
  const { model, tools, modelTimeoutMs } = agent;
  const target = { provider: model.provider ?? model.name, toolNames: new Set(tools.map(({ name }) => name)) };
  const generate = () =>
    model.generate({
      instructions,
      messages: transcriptFor(state.messages, target, ports.digester),
      tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
      get signal() {
        return controller.signal;
      },
      ...(agent.modelSettings && { settings: agent.modelSettings }),
      ...(agent.toolChoice && { toolChoice: choiceNow(agent.toolChoice, state) }),
    });
  const result = await timedCall({ ports, runId: attempt.run.id }, modelTimeoutMs, generate, controller);
  if (result.ended === 'returned') return readReply(result.value, agent, state, ports.options.maxPayloadBytes);
  if (result.ended === 'threw') return controller.isAborted ? { aborted: true } : thrownFailure(result.error);
  const message = `The model did not answer within ${modelTimeoutMs} ms.`;
  return { failure: recordedFailure('MODEL_CALL_FAILED', message, { retryable: true }) };
}

/** A choice that demands a call is made once: the model must be able to answer afterwards. */
function choiceNow(choice: ToolChoice, { modelOperations }: RunState): ToolChoice {
  return choice === 'none' || modelOperations <= 1 ? choice : 'auto';
}

/**
 * A client may throw anything: only a `ModelCallError` says that the same request may succeed later, and only numbers
 * count as numbers.
 */
function thrownFailure(error: unknown): ModelFailure {
  const recorded = recordedError(error, 'MODEL_CALL_FAILED');
  const retryable = recorded.code === 'MODEL_CALL_FAILED' && recorded.retryable === true;
  const failure = { ...recorded, code: 'MODEL_CALL_FAILED', retryable };
  const announced = retryable ? thrownProperty(error, 'retryAfterMs') : undefined;
  const isDelay = typeof announced === 'number' && announced >= 0;
  return { failure, thrown: error, ...(isDelay && { retryAfterMs: announced }) };
}

/** The entry of a request that failed. */
export function failedAttempt(
  { key, attempts }: Pick<ModelState, 'key' | 'attempts'>,
  { failure, finishReason, usage, text }: ModelFailure,
  at: number,
): JournalEntry {
  return {
    type: 'model.attempt_failed',
    at,
    key,
    attempt: attempts,
    error: failure,
    ...(finishReason !== undefined && { finishReason }),
    ...(usage !== undefined && Object.keys(usage).length > 0 && { usage }),
    ...(text !== undefined && { text }),
  };
}

/**
 * The instructions of a run: the agent's text, or what its function returned for this run. A function is evaluated
 * once; its result is durable before the model sees it, so that every later request and process uses the same.
 */
export async function instructionsOf(attempt: Attempt, stop: StopSwitch): Promise<string | ModelFailure> {
  const { ports, run, state } = attempt;
  const { instructions, name, version } = attempt.agent;
  if (typeof instructions === 'string') return instructions;
  if (state.instructions !== null) return state.instructions;
  const result = await timedCall({ ports, runId: run.id }, INSTRUCTIONS_TIMEOUT_MS, () =>
    instructions(instructionsContext(attempt)),
  );
  const failed = (problem: string): ModelFailure => {
    const message = `The function of instructions of agent ${name}@${version} ${problem}`;
    return { failure: recordedFailure('INSTRUCTIONS_FAILED', message, { retryable: false }) };
  };
  if (result.ended === 'timed_out') return failed(`did not return within ${INSTRUCTIONS_TIMEOUT_MS} ms.`);
  if (result.ended === 'threw') return failed(`threw: ${recordedError(result.error, 'INSTRUCTIONS_FAILED').message}`);
  const text: unknown = result.value;
  if (typeof text !== 'string' || isBlankText(text)) return failed('returned no text.');
  const { maxPayloadBytes } = ports.options;
  if (isLargerThan(JSON.stringify(text), maxPayloadBytes))
    return failed(`returned more bytes than maxPayloadBytes (${maxPayloadBytes}) allows.`);
  if (!stop.isAborted)
    await attempt.record([{ type: 'instructions.evaluated', at: ports.clock.now(), instructions: text }]);
  return text;
}

function instructionsContext({ run, state }: Attempt): InstructionsContext {
  const { id, agent, version, sessionId, actor, metadata } = run;
  const { input } = state;
  const texts = input.flatMap((message) => (message.role === 'user' ? message.content : []));
  const prompt = texts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  return structuredClone({ agent, version, runId: id, sessionId, prompt, messages: input, actor, metadata });
}
