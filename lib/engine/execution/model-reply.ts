import type { AgentDefinition } from '../../contracts/agent-definition.js';
import { isBlankText } from '../../contracts/text.js';
import type { Question } from '../../contracts/interaction.js';
import {
  FINISH_REASONS,
  type CallVerdict,
  type EntryOf,
  type FinishReason,
  type JournalEntry,
  type RecordedError,
} from '../../contracts/journal-entry.js';
import { isJsonObject, isSameJson, type JsonObject, type JsonValue } from '../../contracts/json.js';
import type { AssistantPart, ToolCallPart } from '../../contracts/message.js';
import type { ModelReply, ModelReplyCall, ModelReplyPart } from '../../contracts/ports/model-client.port.js';
import { settledUsage, type Usage } from '../../contracts/operation.js';
import { gateDraft } from '../interactions.js';
import type { RunState } from '../journal/run-state.js';
import { isLargerThan, MAX_JSON_DEPTH, parseArguments } from '../values/json-domain.js';
import { recordedFailure, recordedText } from '../values/recorded-error.js';
import type { Attempt } from './attempt.js';
import { failedCall } from './call-entries.js';
import { isCallId, substituteCallId } from './provider-transcript.js';
import { resolveApproval } from './resolve-approval.js';
import { approvalOf, invalidCall, markRead, parseCall } from './validate-call.js';

/**
 * A call as it will be journaled: what the model said, what is known of it, and its result where it will never be
 * executed.
 */
interface ReadCall {
  verdict: CallVerdict;
  part: ToolCallPart;
  refusal: { error: RecordedError; outcome: EntryOf<'tool.failed'>['outcome'] } | null;
}

/**
 * Makes the entries of a reply: the reply itself with a verdict for each call, then a result for each call that will
 * never be executed.
 */
export class ReplyRecorder {
  constructor(private readonly attempt: Attempt) {}

  async record(key: string, reply: ModelReply): Promise<JournalEntry[]> {
    const { ports, state } = this.attempt;
    const at = ports.clock.now();
    const taken = new Set(state.callIds);
    const content: AssistantPart[] = [];
    const calls: CallVerdict[] = [];
    const { finishReason, usage } = reply;
    const entries: JournalEntry[] = [
      { type: 'model.completed', at, key, message: { role: 'assistant', content }, finishReason, usage, calls },
    ];
    for (const part of reply.content) {
      if (part.type !== 'tool-call') {
        content.push(part);
        continue;
      }
      const call = this.readCall(`${key}.t${calls.length}`, part, taken, finishReason);
      content.push(call.part);
      calls.push(call.verdict);
      if (!call.refusal) entries.push(...(await this.validate(call)));
      // Which the validation may have found.
      if (call.refusal) entries.push(failedCall(call.verdict, at, call.refusal.error, call.refusal.outcome));
    }
    return entries;
  }

  private readCall(key: string, call: ModelReplyCall, taken: Set<string>, finishReason: FinishReason): ReadCall {
    const { ports, agent, run } = this.attempt;
    const isUsable = isCallId(call.callId) && !taken.has(call.callId);
    const callId = isUsable ? call.callId : substituteCallId(ports.digester, `${run.id}/${key}`, taken);
    taken.add(callId);
    const { name } = call;
    const parsed = parseArguments(call.argumentsText);
    const tool = agent.tools.find((known) => known.name === name);
    const part: ToolCallPart = {
      type: 'tool-call',
      callId,
      provider: agent.model.provider ?? agent.model.name,
      name,
      ...(parsed.ok ? { arguments: parsed.arguments } : { rawArguments: call.argumentsText }),
      ...(!isUsable && { originalCallId: call.callId }),
      ...(call.providerOptions && { providerOptions: call.providerOptions }),
    };
    const { version = null, recovery = null } = tool ?? {};
    const verdict: CallVerdict = { key, callId, name, toolVersion: version, recovery };
    return {
      verdict,
      part,
      refusal: this.refusalOf(parsed.ok ? null : parsed.problem, tool !== undefined, finishReason),
    };
  }

  private refusalOf(problem: string | null, isKnown: boolean, finishReason: FinishReason): ReadCall['refusal'] {
    if (finishReason === 'length' || finishReason === 'pause') {
      const message = `Not executed: the reply ended early (${finishReason}), so the arguments may be incomplete. Call again with less at a time.`;
      return { outcome: 'not_executed', error: recordedFailure('OUTPUT_TRUNCATED', message) };
    }
    if (!isKnown) {
      const known = this.attempt.agent.tools.map(({ name }) => name).join(', ') || 'none';
      const message = `There is no tool of this name. Available: ${known}.`;
      return { outcome: 'unknown_tool', error: recordedFailure('UNKNOWN_TOOL', message) };
    }
    return problem === null ? null : invalidCall({ ok: false, problems: [problem] });
  }

  /** Completes the verdict, or the refusal. @returns the entries of an approval that needs no person */
  private async validate(call: ReadCall): Promise<JournalEntry[]> {
    const { verdict, part } = call;
    const { ports, run } = this.attempt;
    const tool = this.attempt.toolOf(verdict);
    if (!tool) return [];
    const given = part.arguments as JsonObject;
    const fields = { runId: run.id, operation: verdict.key };
    const parsed = await parseCall(ports, tool, given, fields);
    if (!parsed.ok) {
      call.refusal = invalidCall(parsed);
      return [];
    }
    const { input } = parsed;
    if (!isSameJson(input, given)) verdict.input = input;
    markRead(tool, verdict.input ?? given);
    if (tool.asksUser) verdict.questions = input['questions'] as unknown as Question[];
    if (tool.approval !== 'rule') return [];
    const { callId } = verdict;
    const approval = await approvalOf(ports, tool, input, { runId: run.id, callId, actor: run.actor }, fields);
    if (!approval) return [];
    verdict.approval = approval;
    const gate = gateDraft({ input, approval, questions: null }, ports.options.approvalExpiresMs);
    return (await resolveApproval(this.attempt, gate, verdict)) ?? [];
  }
}

export interface ModelFailure {
  failure: RecordedError;
  /** Announced by the provider, in ms. */
  retryAfterMs?: number;
  /** Of a reply that arrived and ended badly. */
  finishReason?: FinishReason;
  usage?: Usage;
  /** What such a reply said, where no further attempt follows. */
  text?: string;
  /** What the client threw, for the log. */
  thrown?: unknown;
}

/** A model that is told twice in a row that its calls were cut off, and does it again, will not stop. */
const MAX_TRUNCATED_REPLIES = 2;
const MAX_DETAIL = 300;

/**
 * A reply as it arrives from a model client, before anything of it is recorded: a detached copy if it has the promised
 * shape, fits, and ended well. Everything else is a failed attempt, so that none of its calls is executed, none of its
 * text becomes the answer, and a retry of the run asks again.
 * @param value what the client returned: it may be anything, and is never trusted
 */
export function readReply(
  value: unknown,
  agent: AgentDefinition,
  state: RunState,
  maxPayloadBytes: number,
): { reply: ModelReply } | ModelFailure {
  const read = copyOf(value);
  if (typeof read === 'string') {
    const message = `The model client ${agent.model.name} returned what is no reply: ${read}.`;
    return { failure: recordedFailure('MODEL_CALL_FAILED', message, { retryable: false }) };
  }
  const { reply, contentText } = read;
  const { finishReason, usage } = reply;
  if (isLargerThan(contentText, maxPayloadBytes)) {
    const message = `The reply of the model has more bytes of JSON than maxPayloadBytes (${maxPayloadBytes}) allows; it was not stored. Raise maxPayloadBytes and retry the run, or restart it with a smaller task.`;
    return { failure: recordedFailure('LIMIT_EXCEEDED', message, { retryable: false }), finishReason, usage };
  }
  const failure = badEnding(reply, agent, state);
  if (!failure) return { reply };
  const text = failure.retryable === true ? '' : textOf(reply);
  return { failure, finishReason, usage, ...(text !== '' && { text }) };
}

/** Why a reply is not used; null for a good one. The list of good endings is closed. */
function badEnding(reply: ModelReply, agent: AgentDefinition, state: RunState): RecordedError | null {
  const { finishReason, content, usage } = reply;
  const name = agent.model.name;
  const detail = reply.finishDetail === undefined ? '' : `: ${reply.finishDetail}`;
  const hasCalls = content.some(({ type }) => type === 'tool-call');
  switch (finishReason) {
    case 'stop':
    case 'tool-calls':
      if (hasCalls) return null;
      if (finishReason === 'tool-calls')
        return unusable(`The reply of the model ${name} announces tool calls, and has none.`);
      if (agent.allowEmptyAnswer || content.some(isAnswer)) return null;
      // A model may have nothing to add to the results of its tools; without a token it has not even looked at them.
      if (state.messages.at(-1)?.role !== 'user' && (usage.outputTokens || usage.totalTokens)) return null;
      return unusable(
        `The reply of the model ${name} is empty. Where an empty answer is meant, the agent says allowEmptyAnswer: true.`,
      );
    case 'pause':
      return content.length > 0 ? null : unusable(`The model ${name} paused its turn with an empty reply.`);
    case 'length':
      if (hasCalls && agent.truncatedCalls === 'feedback' && state.truncatedReplies + 1 < MAX_TRUNCATED_REPLIES)
        return null;
      return recordedFailure(
        'OUTPUT_TRUNCATED',
        'The reply was cut at the output limit; calls in it were not executed. Raise the output limit of the model and retry the run, or restart it with a smaller task.',
        { retryable: false },
      );
    case 'content-filter':
    case 'refusal':
      return recordedFailure('MODEL_REFUSED', `The model refused to answer (${finishReason}${detail}).`, {
        retryable: false,
      });
    default:
      return unusable(
        `The reply of the model ${name} did not end well (${finishReason}${detail}); nothing in it was used.`,
      );
  }
}

function unusable(message: string): RecordedError {
  return recordedFailure('MODEL_CALL_FAILED', message, { retryable: true });
}

function isAnswer(part: ModelReplyPart): boolean {
  return part.type === 'file' || (part.type === 'text' && !isBlankText(part.text));
}

function textOf({ content }: ModelReply): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
}

/** The copy, or what is wrong with the original. */
function copyOf(value: unknown): { reply: ModelReply; contentText: string } | string {
  try {
    const { content, finishReason, finishDetail, usage } = (value ?? {}) as Partial<Record<keyof ModelReply, unknown>>;
    if (!Array.isArray(content)) return 'content must be a list of parts';
    const contentText = JSON.stringify(content);
    const parts = JSON.parse(contentText) as JsonValue[];
    if (isDeeperThan(parts, MAX_JSON_DEPTH)) return `content is nested deeper than ${MAX_JSON_DEPTH} levels`;
    const problem = parts.map(partProblem).find((found) => found !== null);
    if (problem !== undefined) return problem;
    if (typeof finishReason !== 'string') return `finishReason must be one of: ${FINISH_REASONS.join(', ')}`;
    const isKnown = (FINISH_REASONS as readonly string[]).includes(finishReason);
    const said = isKnown ? finishDetail : `the client said ${JSON.stringify(finishReason.slice(0, MAX_DETAIL))}`;
    const reply: ModelReply = {
      content: parts as unknown as ModelReplyPart[],
      finishReason: isKnown ? (finishReason as FinishReason) : 'other',
      usage: settledUsage(usage),
      ...(typeof said === 'string' && said !== '' && { finishDetail: recordedText(said.slice(0, MAX_DETAIL)) }),
    };
    return { reply, contentText };
  } catch {
    return 'it has no JSON form';
  }
}

/** Goes no deeper than that: a walk to the end might overflow the stack. */
function isDeeperThan(value: JsonValue, levels: number): boolean {
  if (levels < 0) return true;
  if (typeof value !== 'object' || value === null) return false;
  for (const name in value) if (isDeeperThan((value as JsonObject)[name] as JsonValue, levels - 1)) return true;
  return false;
}

/** Every field of a part that has to be there, by the part's type. */
const TEXT_FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  reasoning: ['text'],
  file: ['mediaType'],
  opaque: [],
  'tool-call': ['callId', 'name', 'argumentsText'],
};

function partProblem(part: JsonValue, index: number): string | null {
  const at = `content[${index}]`;
  if (!isJsonObject(part)) return `${at} must be an object`;
  const { type, providerOptions, data, url } = part;
  if (typeof type !== 'string' || !Object.hasOwn(TEXT_FIELDS, type))
    return `${at}.type must be one of: ${Object.keys(TEXT_FIELDS).join(', ')}`;
  const missing = TEXT_FIELDS[type]?.find((field) => typeof part[field] !== 'string');
  if (missing !== undefined) return `${at}.${missing} must be text`;
  if (providerOptions !== undefined && !isJsonObject(providerOptions)) return `${at}.providerOptions must be an object`;
  if (type === 'opaque' && part.value === undefined) return `${at}.value must be JSON`;
  if (type === 'file' && [data, url].filter((given) => typeof given === 'string').length !== 1)
    return `${at} must have either data, as base64 text, or url`;
  return null;
}
