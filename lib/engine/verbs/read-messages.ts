/** A prompt in any of its accepted forms as stored messages: media as base64, nothing executed, nothing cut. */
import type { JsonObject } from '../../contracts/json.js';
import type { AssistantPart, Message, ToolResultPart, UserPart } from '../../contracts/message.js';
import { isBlankText } from '../../contracts/blank-text.js';
import { ASSISTANT_PARTS, isPart, type PartRules, TOOL_PARTS, USER_PARTS } from './message-part-rules.js';
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
  const whole = read.filter((message) => message !== null);
  // Of parts that are none, nothing can be asked further.
  if (problems.length === 0) checkCallsAreAnswered(whole, problems);
  return whole;
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
  // Of parts that are none, the problem is told already.
  if (parts.length > 0 && parts.every((part) => part.type === 'text' && isBlankText(part.text)))
    return bad(problems, field, 'must not be blank');
  return parts;
}

function readUserPart(part: unknown, field: string, problems: FieldProblem[]): UserPart | null {
  if (!isPart(part, USER_PARTS, field, problems)) return null;
  const { type, text, filename, providerOptions: given } = part;
  const read = given === undefined ? undefined : readJson(`${field}.providerOptions`, given, problems);
  const options = read === undefined ? {} : { providerOptions: read as JsonObject };
  if (type === 'text') return { type, text: text as string, ...options };
  const source = type === 'image' ? (part.image ?? part.data ?? part.url) : (part.data ?? part.url);
  const media = readMedia(source);
  if (!media) return bad(problems, field, MEDIA_WORDS);
  const mediaType = (part.mediaType as string | undefined) ?? 'image/*';
  return {
    type: 'file',
    mediaType,
    ...media,
    ...(filename !== undefined && { filename: filename as string }),
    ...options,
  };
}

const MEDIA_WORDS = 'must have bytes, base64 text, or an http(s) URL';

function readMedia(source: unknown): { data: string } | { url: string } | null {
  if (source instanceof Uint8Array) return { data: base64(source) };
  if (typeof source !== 'string' || source === '') return null;
  if (/^https?:\/\//i.test(source)) return URL.canParse(source) ? { url: source } : null;
  const inline = /^data:[^,]*;base64,(.*)$/s.exec(source)?.[1] ?? source;
  return /^[A-Za-z0-9+/]+={0,2}$/.test(inline) && inline.length % 4 === 0 ? { data: inline } : null;
}

function base64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

/** Parts of an earlier transcript: their fields are checked, the rest is taken as it is. */
function readParts<P>(content: unknown, kinds: PartRules, field: string, problems: FieldProblem[]): P[] | null {
  if (!Array.isArray(content) || content.length === 0)
    return bad(problems, field, 'must be a list of at least one part');
  for (const [index, part] of content.entries()) {
    const place = `${field}[${index}]`;
    if (!isPart(part, kinds, place, problems) || part.type !== 'file') continue;
    const { data, url } = part;
    if ((data === undefined) === (url === undefined) || (url !== undefined && !URL.canParse(url as string)))
      bad(problems, place, 'must have base64 text in data, or an address in url');
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
