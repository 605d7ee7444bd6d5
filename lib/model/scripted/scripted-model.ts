import type { ModelClient, ModelReply, ModelReplyPart, ModelRequest } from '../../contracts/ports/model-client.port.js';
import type { Message } from '../../contracts/message.js';
import { ModelCallError } from '../../errors/run.errors.js';
import { isRetryableStatus } from '../../engine/values/recorded-error.js';
import {
  assistantsAfter,
  promptScript,
  type Scripted,
  type ScriptedCall,
  type ScriptedFailure,
  type ScriptedPlace,
  type ScriptedStep,
  userText,
} from './script-step.js';
import { problemsOf, type TranscriptCheck } from './transcript-problems.js';

/** What `scriptedModel` takes beside the script. */
export interface ScriptedModelOptions {
  /** Default `scripted`. */
  name?: string;
  /**
   * How the step of a request is found. `answers` (default): the next one not yet answered, over all runs of this object. `transcript`: the one after the
   * assistant messages since the last user message (steering not counted): the same in a fresh process, and for many runs at once. `prompt`: the script
   * stands in the prompt itself (`@@[…]`), as `promptScript` describes.
   */
  place?: 'answers' | 'transcript' | 'prompt';
  /** What about a transcript is answered with a permanent 400. Default results and ids. */
  strict?: readonly TranscriptCheck[];
}

/** A request as it was when it came. */
export interface RecordedRequest {
  /** The system prompt. */
  instructions: string;
  /** A copy. */
  messages: Message[];
  /** A copy. */
  tools: ModelRequest['tools'];
  /** Absent = `auto`. */
  toolChoice?: ModelRequest['toolChoice'];
  /** Absent = none. */
  settings?: ModelRequest['settings'];
  /** Of the step that was played; null when there was none. */
  step: number | null;
}

/** @param script the steps, in order; empty with `place: 'prompt'` */
export function scriptedModel(script: readonly Scripted[] = [], options: ScriptedModelOptions = {}): ScriptedModel {
  return new ScriptedModel(script, options);
}

/**
 * A language model for tests and demonstrations: answers by a script, keeps every request, and is as strict about
 * transcripts as the strictest provider. It makes no request, needs no key and always answers the same.
 */
export class ScriptedModel implements ModelClient {
  readonly name: string;
  /** In order of arrival. */
  readonly requests: RecordedRequest[] = [];
  private readonly attempts = new Map<string, number>();
  private readonly waiting: { count: number; resolve: (request: RecordedRequest) => void }[] = [];
  private answered = 0;

  constructor(
    private readonly script: readonly Scripted[],
    private readonly options: ScriptedModelOptions = {},
  ) {
    this.name = options.name ?? 'scripted';
  }

  /** Resolves when the n-th request (from 1) has arrived, at once when it has; before that request is answered. */
  requested(count: number): Promise<RecordedRequest> {
    const request = this.requests[count - 1];
    return request ? Promise.resolve(request) : new Promise((resolve) => this.waiting.push({ count, resolve }));
  }

  /** @throws ModelCallError as the script says, for a transcript a strict provider refuses, and when the script has no step left */
  async generate(request: ModelRequest): Promise<ModelReply> {
    const recorded = this.record(request);
    if (request.signal.aborted) throw this.aborted();
    const problems = problemsOf(request.messages, this.options.strict ?? ['results', 'ids']);
    if (problems.length > 0) throw this.failure({ status: 400, message: `invalid request: ${problems.join('; ')}` });
    const found = this.find(request);
    recorded.step = found.index;
    const attempt = (this.attempts.get(found.key) ?? 0) + 1;
    this.attempts.set(found.key, attempt);
    const step =
      typeof found.step === 'function' ? await found.step(request, { index: found.index, attempt }) : found.step;
    if (step.fail !== undefined && attempt <= (step.fail.times ?? 1)) throw this.failure(step.fail);
    await this.pause(step, request.signal);
    if ((this.options.place ?? 'answers') === 'answers') this.answered = Math.max(this.answered, found.index + 1);
    return reply(step, request, found);
  }

  private record(request: ModelRequest): RecordedRequest {
    const { signal: _signal, ...given } = request;
    const recorded: RecordedRequest = { ...structuredClone({ ...given, messages: [...given.messages] }), step: null };
    this.requests.push(recorded);
    for (const { count, resolve } of this.waiting) if (count === this.requests.length) resolve(recorded);
    return recorded;
  }

  private find({ messages }: ModelRequest): Found {
    if (this.options.place === 'prompt') return this.findInPrompt(messages);
    const asked = messages.findLastIndex((message) => message.role === 'user' && message.kind !== 'steering');
    const index = this.options.place === 'transcript' ? assistantsAfter(messages, asked) : this.answered;
    const step = this.script[index];
    if (step === undefined) {
      throw this.failure({
        status: 400,
        message: `the script has ${this.script.length} steps and was asked for number ${index + 1}`,
      });
    }
    const asker = messages[asked];
    const key =
      this.options.place === 'transcript'
        ? `${asker?.id ?? (asker?.role === 'user' ? userText(asker) : '')}#${index}`
        : `#${index}`;
    return { step, index, key };
  }

  private findInPrompt(messages: readonly Message[]): Found {
    let found;
    try {
      found = promptScript(messages);
    } catch {
      throw this.failure({ status: 400, message: 'the text after @@ is no JSON array of steps' });
    }
    if (found === null) return { step: { text: 'no script' }, index: 0, key: 'none' };
    const { steps, index, marker } = found;
    return { step: steps[index] ?? { text: 'end of script' }, index, key: `${marker}#${index}` };
  }

  private async pause(step: ScriptedStep, signal: AbortSignal): Promise<void> {
    if (step.hang === 'deaf') return new Promise(() => undefined);
    const waits: PromiseLike<unknown>[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    if (step.after !== undefined) waits.push(step.after);
    if (step.delayMs !== undefined)
      waits.push(new Promise<void>((resolve) => (timer = setTimeout(resolve, step.delayMs))));
    if (step.hang === true) waits.push(new Promise(() => undefined));
    if (waits.length === 0) return;
    let onAbort: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(this.aborted());
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
    try {
      await Promise.race([Promise.all(waits), aborted]);
    } finally {
      clearTimeout(timer);
      if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
    }
  }

  private aborted(): ModelCallError {
    return new ModelCallError(`The request to the model ${this.name} was aborted.`, { retryable: true });
  }

  private failure({ status, retryable, retryAfterMs, message }: ScriptedFailure): ModelCallError {
    const what = status === undefined ? 'could not be reached' : `answered ${status}`;
    return new ModelCallError(`The model ${this.name} ${what}: ${message ?? 'scripted failure'}.`, {
      retryable: retryable ?? (status === undefined || isRetryableStatus(status)),
      ...(status === undefined ? {} : { status }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  }
}

interface Found extends Pick<ScriptedPlace, 'index'> {
  step: Scripted;
  /** Tells steps of several scripts apart. */
  key: string;
}

function reply(step: ScriptedStep, request: ModelRequest, { key }: Found): ModelReply {
  const text = step.echo === true ? lastText(request.messages) : step.text;
  const calls = step.calls ?? [];
  const content: ModelReplyPart[] = [...(step.parts ?? [])];
  if (text !== undefined && text !== '') content.push({ type: 'text', text });
  content.push(...calls.map((call, place) => replyCall(call, `call_${textHash(key)}_${place}`)));
  return structuredClone({
    content,
    finishReason: step.finishReason ?? (calls.length > 0 ? 'tool-calls' : 'stop'),
    usage: step.usage === null ? {} : (step.usage ?? { inputTokens: 10, outputTokens: 5, totalTokens: 15 }),
  });
}

function replyCall({ name, args, raw, id, providerOptions }: ScriptedCall, madeId: string): ModelReplyPart {
  const argumentsText = raw ?? JSON.stringify(args ?? {});
  return {
    type: 'tool-call',
    callId: id ?? madeId,
    name,
    argumentsText,
    ...(providerOptions === undefined ? {} : { providerOptions }),
  };
}

/** Words of the last message, its results' included. */
function lastText(messages: readonly Message[]): string {
  const last = messages.at(-1);
  if (last === undefined) return '(empty)';
  if (last.role === 'system') return last.content;
  const texts = last.content.map((part) => {
    if (part.type === 'text' || part.type === 'reasoning') return part.text;
    return part.type === 'tool-result'
      ? typeof part.output === 'string'
        ? part.output
        : JSON.stringify(part.output)
      : '';
  });
  return texts.join('') || '(empty)';
}

/** Short and stable, nothing more (djb2). */
function textHash(text: string): string {
  let hash = 5381;
  for (const char of text) hash = (hash * 33 + (char.codePointAt(0) as number)) >>> 0;
  return hash.toString(36);
}
