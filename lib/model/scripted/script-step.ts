import type { FinishReason } from '../../contracts/journal-entry.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../contracts/json.js';
import type { ModelReplyPart, ModelRequest } from '../../contracts/ports/model-client.port.js';
import type { Usage } from '../../contracts/operation.js';
import type { Message, UserMessage } from '../../contracts/message.js';

/** A call that a scripted step asks for. */
export interface ScriptedCall {
  /** Of the tool; need not exist. */
  name: string;
  /** Default `{}`. */
  args?: JsonValue;
  /** The argument text as it stands, for text that is no JSON; instead of `args`. */
  raw?: string;
  /** Default: derived from the place of the step and of the call, the same in every process. */
  id?: string;
  /** Opaque to this package; goes back to the provider as it came. */
  providerOptions?: JsonObject;
}

/** A failure that a scripted step answers with. */
export interface ScriptedFailure {
  /** HTTP status; absent for a failure of the network. */
  status?: number;
  /** Default: by the status, as for a real model. */
  retryable?: boolean;
  /** The wait that is announced, in ms. */
  retryAfterMs?: number;
  /** Default: by the status. */
  message?: string;
  /** So many requests of this step fail before it answers. Default 1; `Infinity` for good. */
  times?: number;
}

/** What a scripted model answers to one request, as data. */
export interface ScriptedStep {
  /** Absent = no text. */
  text?: string;
  /** In order, after the text. */
  calls?: readonly ScriptedCall[];
  /** Further parts of the reply, before text and calls: reasoning, files, opaque parts. */
  parts?: readonly ModelReplyPart[];
  /** Default 10 in, 5 out; null for a provider that reports nothing. */
  usage?: Usage | null;
  /** Default `tool-calls` with calls, `stop` without. */
  finishReason?: FinishReason;
  /** Answers with the text of the last message instead of `text`. */
  echo?: boolean;
  /** The request fails instead. */
  fail?: ScriptedFailure;
  /** The answer waits for it; an aborted request does not wait longer. */
  after?: PromiseLike<unknown>;
  /** Milliseconds before the answer; for demonstrations, tests wait for signals. */
  delayMs?: number;
  /** Never answers: `true` until the request is aborted, `'deaf'` not even then. */
  hang?: true | 'deaf';
}

/** Where in the script a request is. */
export interface ScriptedPlace {
  /** Of the step in the script, from 0. */
  index: number;
  /** Requests for this step so far, this one included. */
  attempt: number;
}

/** A step, or a function that makes it from the request. */
export type Scripted =
  ScriptedStep | ((request: ModelRequest, place: ScriptedPlace) => ScriptedStep | Promise<ScriptedStep>);

/** A script that was found in a prompt. */
export interface PromptScript {
  /** At least one. */
  steps: ScriptedStep[];
  /** Of the step to play, from 0. */
  index: number;
  /** The script's text, to tell scripts apart. */
  marker: string;
}

/**
 * A script that travels in the prompt: a user message that begins with `@@` and goes on, on the same line, with a JSON
 * array of steps. Which step is played follows from the transcript alone (assistant messages after that user message),
 * so a run resumed in another process gets its next step.
 *
 * @@[{"calls":[{"name":"lookup","args":{"id":7}}]},{"text":"done"}]
 *
 * Steps are those of a `ScriptedStep` as JSON, with `args` an object or the raw argument text, `finish` a finish
 * reason, `usage` `{ "in", "out" }` or null, and `fail` `{ "status", "headers"?, "times"? }`.
 *
 * The script in force; null without one. @throws Error when the text after `@@` is no JSON array of objects
 */
export function promptScript(messages: readonly Message[]): PromptScript | null {
  const at = messages.findLastIndex((message) => message.role === 'user' && userText(message).startsWith('@@'));
  if (at < 0) return null;
  const marker = userText(messages[at] as UserMessage);
  const parsed = JSON.parse(marker.slice(2).split('\n', 1)[0] as string) as JsonValue;
  if (!Array.isArray(parsed) || !parsed.every(isJsonObject))
    throw new Error('the script after @@ is no array of steps');
  return { steps: parsed.map(stepFromJson), index: assistantsAfter(messages, at), marker };
}

/** How many replies came after the message at `index`. */
export function assistantsAfter(messages: readonly Message[], index: number): number {
  return messages.slice(index + 1).filter(({ role }) => role === 'assistant').length;
}

export function userText(message: UserMessage): string {
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function stepFromJson(json: JsonObject): ScriptedStep {
  const step: ScriptedStep = {};
  if (typeof json['text'] === 'string') step.text = json['text'];
  if (Array.isArray(json['calls'])) step.calls = json['calls'].filter(isJsonObject).map(callFromJson);
  const finish = json['finish'] ?? json['finishReason'];
  if (typeof finish === 'string') step.finishReason = FINISH.get(finish) ?? (finish as FinishReason);
  if (json['usage'] === null) step.usage = null;
  else if (isJsonObject(json['usage'])) step.usage = usageFromJson(json['usage']);
  if (isJsonObject(json['fail'])) step.fail = failureFromJson(json['fail']);
  if (typeof json['delayMs'] === 'number') step.delayMs = json['delayMs'];
  if (json['hang'] === true) step.hang = true;
  if (json['echo'] === true) step.echo = true;
  return step;
}

/** The words of the chat-completions wire. */
const FINISH: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ['tool_calls', 'tool-calls'],
  ['content_filter', 'content-filter'],
]);

function callFromJson(json: JsonObject): ScriptedCall {
  const { name, args, id } = json;
  return {
    name: typeof name === 'string' ? name : '',
    ...(typeof args === 'string' ? { raw: args } : { args: args ?? {} }),
    ...(typeof id === 'string' ? { id } : {}),
  };
}

function usageFromJson(json: JsonObject): NonNullable<ScriptedStep['usage']> {
  const inputTokens = typeof json['in'] === 'number' ? json['in'] : 10;
  const outputTokens = typeof json['out'] === 'number' ? json['out'] : 5;
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

function failureFromJson(json: JsonObject): ScriptedFailure {
  const headers = isJsonObject(json['headers']) ? json['headers'] : {};
  const seconds = headers['retry-after'];
  return {
    ...(typeof json['status'] === 'number' ? { status: json['status'] } : {}),
    ...(typeof json['times'] === 'number' ? { times: json['times'] } : {}),
    ...(typeof seconds === 'string' && /^\d+$/.test(seconds) ? { retryAfterMs: Number(seconds) * 1_000 } : {}),
  };
}
