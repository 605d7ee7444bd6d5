/**
 * A scripted, strict, OpenAI-compatible model over HTTP (POST …/chat/completions, not streaming). The script travels in the prompt as in
 * `lib/model/scripted/script-step.ts`: a user message that begins with `@@` holds a JSON array of steps, and the step played is the number of assistant
 * messages after it. A request that a strict provider refuses is answered with 400 and the reason.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface WireMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content?: string | null | { type: string; text?: string; [more: string]: unknown }[];
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
  [more: string]: unknown;
}

export interface WireBody {
  model: string;
  messages: WireMessage[];
  tools?: { type: 'function'; function: { name: string; description?: string; parameters: unknown } }[];
  [more: string]: unknown;
}

export interface WireStep {
  text?: string;
  calls?: { name: string; args?: object | string; id?: string }[];
  finish?: string;
  usage?: { in?: number; out?: number } | null;
  /** Replaces the usage object of the answer as it stands. */
  rawUsage?: unknown;
  /** Fields added to the answer's message. */
  message?: Record<string, unknown>;
  /** Replaces the whole answer, with status 200. */
  body?: unknown;
  fail?: { status: number; headers?: Record<string, string | string[]>; body?: unknown; times?: number };
  /** The connection is cut instead of an answer: before it, or in the middle of the body. */
  cut?: 'before' | 'body';
  hang?: boolean;
  echo?: boolean;
}

export interface ServedRequest {
  body: WireBody;
  headers: IncomingMessage['headers'];
  /** Of the step that was played; null when the request was refused or had no script. */
  step: number | null;
  /** The status given; null for a request that was left hanging or cut. */
  status: number | null;
  /** Resolves when the client has gone before an answer. */
  gone: Promise<void>;
}

export interface ModelServer {
  /** Base URL for an OpenAI-compatible client, ending in `/v1`. */
  url: string;
  requests: ServedRequest[];
  /** Resolves with the n-th request, from 1. */
  requested(count: number): Promise<ServedRequest>;
  close(): Promise<void>;
}

/** The prompt that carries a script. */
export function scriptPrompt(...steps: WireStep[]): string {
  return `@@${JSON.stringify(steps)}`;
}

export async function startModelServer(): Promise<ModelServer> {
  const served: ServedRequest[] = [];
  const failures = new Map<string, number>();
  const waiting: { count: number; resolve: (request: ServedRequest) => void }[] = [];

  const server = createServer((request, response) => {
    readJson(request)
      .then((body) => serve(body, request, response))
      .catch(() => sendJson(response, 400, { error: { message: 'bad json' } }));
  });

  function serve(body: WireBody, request: IncomingMessage, response: ServerResponse): void {
    const gone = new Promise<void>((resolve) => response.once('close', () => !response.writableFinished && resolve()));
    const entry: ServedRequest = { body, headers: request.headers, step: null, status: null, gone };
    served.push(entry);
    for (const { count, resolve } of waiting) if (count === served.length) resolve(entry);
    const answer = (status: number, value: unknown, headers: Record<string, string | string[]> = {}) => {
      entry.status = status;
      sendJson(response, status, value, headers);
    };
    if (!request.url?.endsWith('/chat/completions')) return answer(404, { error: { message: 'not found' } });
    const problem = wireProblem(body.messages);
    if (problem !== null) {
      return answer(400, { error: { message: `invalid request: ${problem}`, type: 'invalid_request_error' } });
    }
    const at = body.messages.findLastIndex((message) => message.role === 'user' && textOf(message).startsWith('@@'));
    if (at < 0) return answer(200, completion(body, { text: 'no script' }, 'none'));
    const marker = textOf(body.messages[at] as WireMessage);
    const script = JSON.parse(marker.slice(2).split('\n', 1)[0] as string) as WireStep[];
    entry.step = body.messages.slice(at + 1).filter(({ role }) => role === 'assistant').length;
    const step = script[entry.step] ?? { text: 'end of script' };
    const key = `${marker}#${entry.step}`;
    if (step.fail !== undefined && (failures.get(key) ?? 0) < (step.fail.times ?? 1)) {
      failures.set(key, (failures.get(key) ?? 0) + 1);
      const { status, headers, body: failure } = step.fail;
      return answer(status, failure ?? { error: { message: 'scripted failure' } }, headers);
    }
    if (step.hang) return;
    if (step.cut === 'before') return void response.destroy();
    if (step.cut === 'body') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      return void response.write('{"choices"', () => response.destroy());
    }
    if (step.body !== undefined) return answer(200, step.body);
    const text = step.echo ? textOf(body.messages.at(-1) as WireMessage) || '(empty)' : step.text;
    answer(200, completion(body, { ...step, ...(text === undefined ? {} : { text }) }, key));
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests: served,
    requested: (count) => {
      const request = served[count - 1];
      return request ? Promise.resolve(request) : new Promise((resolve) => waiting.push({ count, resolve }));
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** What a strict provider refuses; null when it accepts. */
export function wireProblem(messages: readonly WireMessage[]): string | null {
  const seen = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index] as WireMessage;
    const problem = loneProblem(message, index) ?? blankProblem(message, index);
    if (problem !== null) return problem;
    if (message.role === 'tool')
      return `tool result ${message.tool_call_id} without its call right before (message ${index})`;
    const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : [];
    for (const call of calls) {
      if (!call.id || !call.function?.name) return `call without id or name in message ${index}`;
      if (seen.has(call.id)) return `duplicate call id ${call.id}`;
      seen.add(call.id);
      if (!isObjectText(call.function.arguments)) return `arguments of ${call.id} are not a JSON object`;
    }
    for (const call of calls) {
      const next = messages[++index];
      const found = `${next?.role} ${next?.tool_call_id ?? ''}`;
      if (next?.role !== 'tool' || next.tool_call_id !== call.id)
        return `call ${call.id} has no result in order (found ${found})`;
      const resultProblem = loneProblem(next, index) ?? blankProblem(next, index);
      if (resultProblem !== null) return resultProblem;
    }
  }
  return null;
}

function blankProblem(message: WireMessage, index: number): string | null {
  const isVisible = (text: string | undefined) => /[^\s\u200b]/.test(text ?? '');
  const blank = `blank ${message.role} text in message ${index}`;
  if (Array.isArray(message.content)) {
    return message.content.some((part) => part.type === 'text' && !isVisible(part.text)) ? blank : null;
  }
  const maySayNothing = message.role === 'assistant' && message.tool_calls !== undefined && message.content == null;
  return maySayNothing || isVisible(message.content ?? undefined) ? null : blank;
}

function loneProblem(message: WireMessage, index: number): string | null {
  // JSON.stringify writes a lone surrogate as its escape and a pair as itself; an escape in the text itself has its backslash doubled.
  return /(?<!\\)(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/i.test(JSON.stringify(message))
    ? `lone surrogate in message ${index}`
    : null;
}

function isObjectText(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text || '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function textOf(message: WireMessage): string {
  if (typeof message.content === 'string') return message.content;
  return (message.content ?? []).map((part) => part.text ?? '').join('');
}

function completion(body: WireBody, step: WireStep, key: string): object {
  const calls = (step.calls ?? []).map(({ name, args, id }, place) => ({
    id: id ?? `call_${hash(key)}_${place}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}) },
  }));
  const input = step.usage?.in ?? 10;
  const output = step.usage?.out ?? 5;
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const message = {
    role: 'assistant',
    content: step.text ?? null,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...step.message,
  };
  return {
    id: `chatcmpl-${hash(key)}`,
    object: 'chat.completion',
    created: 1,
    model: body.model,
    ...('rawUsage' in step ? { usage: step.rawUsage } : step.usage === null ? {} : { usage }),
    choices: [{ index: 0, finish_reason: step.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'), message }],
  };
}

function hash(text: string): string {
  let value = 5381;
  for (const char of text) value = (value * 33 + (char.codePointAt(0) as number)) >>> 0;
  return value.toString(36);
}

async function readJson(request: IncomingMessage): Promise<WireBody> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as WireBody;
}

function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string | string[]> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof value === 'string' ? value : JSON.stringify(value));
}
