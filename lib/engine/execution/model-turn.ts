/**
 * One request to a model, and what its reply or failure means for the journal. Makes no decision about what happens next.
 */
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { Question } from '../../contracts/interaction.js';
import type { ApprovalVerdict, CallVerdict, JournalEntry, RecordedError } from '../../contracts/journal-entry.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { AssistantPart, ToolCallPart } from '../../contracts/message.js';
import type { ModelClient, ModelReply, ModelReplyCall, ToolChoice } from '../../contracts/ports/model-client.port.js';
import { ownDelay, type RetryPolicy } from '../../contracts/retry-policy.js';
import type { RunRecord } from '../../contracts/run.js';
import type { EnginePorts } from '../engine-ports.js';
import { gateDraft, type InteractionRun } from '../interactions.js';
import type { ModelState, RunState } from '../journal/run-state.js';
import { parseArguments } from '../values/parse-arguments.js';
import { recordedError, recordedFailure } from '../values/recorded-error.js';
import { thrownStack } from '../values/thrown-stack.js';
import { thrownProperty } from '../values/thrown-value.js';
import { instructionsOf } from './agent-instructions.js';
import { resolveApproval, type DecisionPorts } from './resolve-approval.js';
import { approvalOf, parseCall } from './validate-call.js';
import { isCallId, substituteCallId, transcriptFor } from './provider-transcript.js';
import { readReply, type ModelFailure } from './read-reply.js';
import { markRead } from './recheck-call.js';
import { timedCall } from './timed-call.js';

/** `aborted`: cut by ourselves, which is no failure of the provider. */
export type ModelOutcome = { reply: ModelReply } | ModelFailure | { aborted: true };

/** Makes exactly one request, once the instructions are known. @throws what `record` throws */
export async function requestModel(
  agent: AgentDefinition,
  run: RunRecord,
  state: RunState,
  ports: Pick<EnginePorts, 'clock' | 'digester' | 'options' | 'log' | 'scope'>,
  controller: AbortController,
  record: (entries: JournalEntry[]) => Promise<void>,
): Promise<ModelOutcome> {
  const outcome = await askModel(agent, run, state, ports, controller, record);
  if ('failure' in outcome) {
    const { failure, thrown } = outcome;
    ports.log.warn('a model request failed', {
      runId: state.runId,
      operation: state.model?.key,
      attempt: state.model?.attempts,
      model: agent.modelName,
      code: failure.code,
      status: failure.status,
      retryable: failure.retryable,
      ...(thrown === undefined ? { problem: failure.message } : { stack: thrownStack(thrown) }),
    });
  }
  return outcome;
}

async function askModel(
  agent: AgentDefinition,
  run: RunRecord,
  state: RunState,
  ports: Pick<EnginePorts, 'clock' | 'digester' | 'options' | 'scope'>,
  controller: AbortController,
  record: (entries: JournalEntry[]) => Promise<void>,
): Promise<ModelOutcome> {
  const instructions = await instructionsOf(agent, run, state, ports, async (entries) => {
    if (!controller.signal.aborted) await record(entries);
  });
  if (controller.signal.aborted) return { aborted: true };
  if (typeof instructions !== 'string') return instructions;
  const target = {
    provider: providerOf(agent.model),
    toolNames: new Set(agent.tools.map(({ name }) => name)),
  };
  const result = await timedCall({ ports, runId: run.id }, agent.modelTimeoutMs, controller, () =>
    agent.model.generate({
      instructions,
      messages: transcriptFor(state.messages, target, ports.digester),
      tools: agent.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
      ...(agent.modelSettings && { settings: agent.modelSettings }),
      ...(agent.toolChoice && { toolChoice: choiceNow(agent.toolChoice, state) }),
      signal: controller.signal,
    }),
  );
  if (result.ended === 'returned') return readReply(result.value, agent, state, ports.options.maxPayloadBytes);
  if (result.ended === 'timed_out')
    return {
      failure: recordedFailure('MODEL_CALL_FAILED', `The model did not answer within ${agent.modelTimeoutMs} ms.`, {
        retryable: true,
      }),
    };
  if (controller.signal.aborted) return { aborted: true };
  return thrownFailure(result.error);
}

/** A choice that demands a call is made once: the model must be able to answer afterwards. */
function choiceNow(choice: ToolChoice, { modelOperations }: RunState): ToolChoice {
  return choice === 'none' || modelOperations <= 1 ? choice : 'auto';
}

/** A client may throw anything: only a `ModelCallError` says that the same request may succeed later, and only numbers count as numbers. */
function thrownFailure(error: unknown): ModelFailure {
  const recorded = recordedError(error, 'MODEL_CALL_FAILED');
  const retryable = recorded.code === 'MODEL_CALL_FAILED' && recorded.retryable === true;
  const failure = { ...recorded, code: 'MODEL_CALL_FAILED', retryable };
  const announced = retryable ? thrownProperty(error, 'retryAfterMs') : undefined;
  const isDelay = typeof announced === 'number' && announced >= 0;
  return { failure, thrown: error, ...(isDelay && { retryAfterMs: announced }) };
}

/** The entry of an attempt that failed. */
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

/** Ms until the next request after the n-th failure: what the provider announced, else our own doubling delay. */
export function retryDelay(policy: RetryPolicy, failures: number, retryAfterMs: number | undefined): number {
  if (retryAfterMs !== undefined) return Math.min(retryAfterMs, policy.maxRetryAfterMs);
  return ownDelay(policy, failures);
}

function providerOf(model: ModelClient): string {
  return model.provider ?? model.name;
}

/** The entries of a reply: the reply itself with a verdict for each call, then a result for each call that will never be executed. */
export class ReplyRecorder {
  constructor(
    private readonly ports: DecisionPorts & Pick<EnginePorts, 'options'>,
    private readonly agent: AgentDefinition,
    private readonly run: InteractionRun & Pick<RunRecord, 'actor'>,
  ) {}

  async record(key: string, reply: ModelReply, state: RunState): Promise<JournalEntry[]> {
    const at = this.ports.clock.now();
    const taken = new Set(state.callIds);
    const content: AssistantPart[] = [];
    const calls: CallVerdict[] = [];
    const settled: JournalEntry[] = [];
    for (const part of reply.content) {
      if (part.type !== 'tool-call') {
        content.push(part);
        continue;
      }
      const callKey = `${key}.t${calls.length}`;
      const call = this.readCall(callKey, part, taken);
      content.push(call.part);
      const { verdict, refusal, input } = await this.judge(callKey, call, reply);
      calls.push(verdict);
      if (refusal) settled.push({ type: 'tool.failed', at, key: callKey, ...refusal });
      else if (verdict.approval && input) settled.push(...(await this.decided(verdict, verdict.approval, input)));
    }
    return [
      {
        type: 'model.completed',
        at,
        key,
        message: { role: 'assistant', content },
        finishReason: reply.finishReason,
        usage: reply.usage,
        calls,
      },
      ...settled,
    ];
  }

  /** Empty when people are to be asked. */
  private async decided(verdict: CallVerdict, approval: ApprovalVerdict, input: JsonObject): Promise<JournalEntry[]> {
    const ask = gateDraft({ input, approval, questions: null }, this.ports.options.approvalExpiresMs);
    return (await resolveApproval(this.ports, this.agent, this.run, ask, verdict)) ?? [];
  }

  private readCall(
    key: string,
    call: ModelReplyCall,
    taken: Set<string>,
  ): { part: ToolCallPart; problem: string | null } {
    const usable = isCallId(call.callId) && !taken.has(call.callId);
    const callId = usable ? call.callId : substituteCallId(this.ports.digester, `${this.run.id}/${key}`, taken);
    taken.add(callId);
    const parsed = parseArguments(call.argumentsText);
    return {
      part: {
        type: 'tool-call',
        callId,
        provider: providerOf(this.agent.model),
        name: call.name,
        ...(parsed.ok ? { arguments: parsed.arguments } : { rawArguments: call.argumentsText }),
        ...(usable ? {} : { originalCallId: call.callId }),
        ...(call.providerOptions && { providerOptions: call.providerOptions }),
      },
      problem: parsed.ok ? null : parsed.problem,
    };
  }

  private async judge(
    key: string,
    { part, problem }: { part: ToolCallPart; problem: string | null },
    reply: ModelReply,
  ): Promise<{
    verdict: CallVerdict;
    /** As it will be executed. */
    input?: JsonObject;
    refusal?: { outcome: 'invalid_arguments' | 'unknown_tool' | 'not_executed' | 'error'; error: RecordedError };
  }> {
    const tool = this.agent.tools.find(({ name }) => name === part.name);
    const verdict: CallVerdict = {
      key,
      callId: part.callId,
      name: part.name,
      toolVersion: tool?.version ?? null,
      recovery: tool?.recovery ?? null,
    };
    if (reply.finishReason === 'length' || reply.finishReason === 'pause') {
      const message = `Not executed: the reply ended early (${reply.finishReason}), so the arguments may be incomplete. Call again with less at a time.`;
      return { verdict, refusal: { outcome: 'not_executed', error: recordedFailure('OUTPUT_TRUNCATED', message) } };
    }
    if (!tool) {
      const known = this.agent.tools.map(({ name }) => name).join(', ');
      return {
        verdict,
        refusal: {
          outcome: 'unknown_tool',
          error: recordedFailure('UNKNOWN_TOOL', `There is no tool of this name. Available: ${known || 'none'}.`),
        },
      };
    }
    if (problem !== null) return { verdict, refusal: invalid(problem) };
    const parsed = await parseCall(this.ports, tool, part.arguments as JsonObject, {
      runId: this.run.id,
      operation: key,
    });
    if (!parsed.ok) {
      const problems = parsed.problems.join('; ');
      return { verdict, refusal: 'timedOut' in parsed ? unchecked(problems) : invalid(problems) };
    }
    if (!this.sameValue(parsed.input, part.arguments as JsonObject)) verdict.input = parsed.input;
    markRead(tool, verdict.input ?? (part.arguments as JsonObject));
    if (tool.approval === 'rule') {
      const { id: runId, actor } = this.run;
      const call = { runId, callId: part.callId, actor };
      const approval = await approvalOf(this.ports, tool, parsed.input, call, { runId, operation: key });
      if (approval) verdict.approval = approval;
    }
    if (tool.asksUser) verdict.questions = parsed.input['questions'] as unknown as Question[];
    return { verdict, input: parsed.input };
  }

  private sameValue(a: JsonValue, b: JsonValue): boolean {
    // Mostly the validator changed nothing: then the texts are the same, and making them canonical costs several times as much.
    return (
      JSON.stringify(a) === JSON.stringify(b) || this.ports.digester.canonical(a) === this.ports.digester.canonical(b)
    );
  }
}

function unchecked(problem: string): { outcome: 'error'; error: RecordedError } {
  return {
    outcome: 'error',
    error: recordedFailure('TOOL_TIMED_OUT', `The tool was not run: ${problem}.`),
  };
}

function invalid(problem: string): { outcome: 'invalid_arguments'; error: RecordedError } {
  return {
    outcome: 'invalid_arguments',
    error: recordedFailure('INVALID_ARGUMENTS', `The arguments are not valid: ${problem}`),
  };
}
