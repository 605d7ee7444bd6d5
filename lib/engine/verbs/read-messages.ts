/** A prompt in any of its accepted forms as stored messages: media as base64, nothing executed, nothing cut. */
import type { JsonObject } from '../../contracts/json.js';
import type { AssistantPart, Message, ToolResultPart, UserPart } from '../../contracts/message.js';
import { isBlankText } from '../../contracts/blank-text.js';
import { readJson } from './read-json.js';
import { isRecord, type FieldProblem } from './read-start-options.js';

/** Exactly one of the two must be given; problems are added to the list. */
export function readMessages(prompt: unknown, messages: unknown, problems: FieldProblem[]): Message[] {
  if ((prompt === undefined) === (messages === undefined)) {
    problems.push({ field: 'prompt', problem: 'or messages must be given, and not both' });
    return [];
  }
  if (prompt !== undefined) {
    if (typeof prompt === 'string' && !isBlankText(prompt))
      return [{ role: 'user', content: [{ type: 'text', text: prompt }] }];
    problems.push({ field: 'prompt', problem: 'must be text that is not blank' });
    return [];
  }
  if (!Array.isArray(messages) || messages.length === 0) {
    problems.push({ field: 'messages', problem: 'must be a list of at least one message' });
    return [];
  }
  const read = messages.map((message, index) => readMessage(message, `messages[${index}]`, problems));
  const last = read.at(-1);
  if (last && last.role !== 'user')
    problems.push({
      field: `messages[${read.length - 1}].role`,
      problem: "must be 'user': a prompt ends with what the user says",
    });
  checkCallsAreAnswered(
    read.filter((message) => message !== null),
    problems,
  );
  return read.filter((message) => message !== null);
}

function readMessage(value: unknown, field: string, problems: FieldProblem[]): Message | null {
  if (!isRecord(value)) return bad(problems, field, 'must be an object');
  const { role, content } = value as { role: unknown; content: unknown };
  switch (role) {
    case 'user': {
      const parts = readUserContent(content, `${field}.content`, problems);
      return parts && { role, content: parts };
    }
    case 'system':
      if (typeof content === 'string' && !isBlankText(content)) return { role, content };
      return bad(problems, `${field}.content`, 'must be text that is not blank');
    case 'assistant': {
      const parts =
        typeof content === 'string'
          ? [{ type: 'text', text: content } as const]
          : readParts<AssistantPart>(content, ASSISTANT_PARTS, `${field}.content`, problems);
      return parts && { role, content: parts };
    }
    case 'tool': {
      const parts = readParts<ToolResultPart>(content, TOOL_PARTS, `${field}.content`, problems);
      return parts && { role, content: parts };
    }
    default:
      return bad(problems, `${field}.role`, "must be 'user', 'assistant', 'system' or 'tool'");
  }
}

function readUserContent(content: unknown, field: string, problems: FieldProblem[]): UserPart[] | null {
  if (typeof content === 'string')
    return isBlankText(content) ? bad(problems, field, 'must not be blank') : [{ type: 'text', text: content }];
  if (!Array.isArray(content) || content.length === 0) return bad(problems, field, 'must be text or a list of parts');
  const parts = content
    .map((part, index) => readUserPart(part, `${field}[${index}]`, problems))
    .filter((part) => part !== null);
  if (parts.every((part) => part.type === 'text' && isBlankText(part.text)))
    return bad(problems, field, 'must not be blank');
  return parts;
}

function readUserPart(value: unknown, field: string, problems: FieldProblem[]): UserPart | null {
  if (!isRecord(value)) return bad(problems, field, 'must be an object');
  const part = value as Record<string, unknown>;
  const providerOptions = isRecord(part.providerOptions)
    ? readJson(`${field}.providerOptions`, part.providerOptions, problems)
    : undefined;
  const options = providerOptions === undefined ? {} : { providerOptions: providerOptions as JsonObject };
  if (part.type === 'text')
    return typeof part.text === 'string'
      ? { type: 'text', text: part.text, ...options }
      : bad(problems, `${field}.text`, 'must be text');
  if (part.type !== 'image' && part.type !== 'file')
    return bad(problems, `${field}.type`, "must be 'text', 'image' or 'file'");
  const source = part.type === 'image' ? (part.image ?? part.data ?? part.url) : (part.data ?? part.url);
  const mediaType = part.mediaType ?? (part.type === 'image' ? 'image/*' : undefined);
  if (typeof mediaType !== 'string' || !/^[\w.+-]+\/[\w.+*-]+$/.test(mediaType))
    return bad(problems, `${field}.mediaType`, 'must be a media type such as image/png');
  const data = readMedia(source);
  if (!data) return bad(problems, field, 'must have bytes, base64 text, or an http(s) URL');
  return {
    type: 'file',
    mediaType,
    ...data,
    ...(typeof part.filename === 'string' && { filename: part.filename }),
    ...options,
  };
}

function readMedia(source: unknown): { data: string } | { url: string } | null {
  if (source instanceof Uint8Array) return { data: base64(source) };
  if (typeof source !== 'string' || source === '') return null;
  if (/^https?:\/\//i.test(source)) return { url: source };
  const inline = /^data:[^,]*;base64,(.*)$/s.exec(source)?.[1] ?? source;
  return /^[A-Za-z0-9+/]+={0,2}$/.test(inline) && inline.length % 4 === 0 ? { data: inline } : null;
}

function base64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

const ASSISTANT_PARTS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  reasoning: ['text'],
  file: ['mediaType'],
  'tool-call': ['callId', 'name'],
  opaque: [],
};
const TOOL_PARTS: Readonly<Record<string, readonly string[]>> = { 'tool-result': ['callId', 'name', 'outcome'] };

/** Parts of an earlier transcript: their required texts are checked, the rest is taken as it is. */
function readParts<P>(
  content: unknown,
  kinds: Readonly<Record<string, readonly string[]>>,
  field: string,
  problems: FieldProblem[],
): P[] | null {
  if (!Array.isArray(content) || content.length === 0)
    return bad(problems, field, 'must be a list of at least one part');
  for (const [index, part] of content.entries()) {
    const type = isRecord(part) && typeof part.type === 'string' ? part.type : '';
    const texts = Object.hasOwn(kinds, type) ? kinds[type] : undefined;
    if (!texts) bad(problems, `${field}[${index}].type`, `must be one of ${Object.keys(kinds).join(', ')}`);
    else
      for (const name of texts)
        if (typeof (part as Record<string, unknown>)[name] !== 'string')
          bad(problems, `${field}[${index}].${name}`, 'must be text');
  }
  return (readJson(field, content, problems) as P[] | undefined) ?? null;
}

/** Providers demand it (I5): every call in the history is answered, in order, by the message right after it. */
function checkCallsAreAnswered(messages: readonly Message[], problems: FieldProblem[]): void {
  messages.forEach((message, index) => {
    const calls =
      message.role === 'assistant'
        ? message.content.flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []))
        : [];
    const next = messages[index + 1];
    const results = next?.role === 'tool' ? next.content.map(({ callId }) => callId) : [];
    if (calls.length > 0 && calls.join('\n') !== results.join('\n'))
      problems.push({
        field: `messages[${index}]`,
        problem: 'has calls that the next message does not answer one by one, in order',
      });
    const before = messages[index - 1];
    if (
      message.role === 'tool' &&
      !(before?.role === 'assistant' && before.content.some(({ type }) => type === 'tool-call'))
    ) {
      problems.push({ field: `messages[${index}]`, problem: 'has results without the calls they answer right before' });
    }
  });
}

function bad(problems: FieldProblem[], field: string, problem: string): null {
  problems.push({ field, problem });
  return null;
}
