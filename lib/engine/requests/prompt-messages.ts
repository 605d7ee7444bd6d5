import { isRecord } from '../../contracts/json.js';
import { isBlankText } from '../../contracts/text.js';
import type { AssistantPart, Message, ToolOutcome, ToolResultPart, UserPart } from '../../contracts/message.js';
import {
  anything,
  type Field,
  type Fields,
  field,
  type ObjectField,
  oneOf,
  openObject,
  type Report,
  required,
  within,
} from '../../contracts/schema.js';
import { json, jsonObject } from './payload.js';

/** A prompt as messages, in any of its accepted forms: media become base64, nothing is executed, nothing is cut. */
export const PROMPT_MESSAGES: Field<Message[]> = {
  doc: { type: 'array', items: { type: 'object' }, description: 'Ends with a user message.' },
  read: readMessages,
};

export function userMessage(text: string): Message {
  return { role: 'user', content: [{ type: 'text', text }] };
}

// ---- what the parts of messages must have ----

const OUTCOMES: Readonly<Record<ToolOutcome, true>> = {
  success: true,
  error: true,
  denied: true,
  unknown: true,
  invalid_arguments: true,
  unknown_tool: true,
  cancelled: true,
  not_executed: true,
};

const TEXT = field<string>('text', (value) => typeof value === 'string');
const OBJECT = field<object>('an object', isRecord);
const MEDIA_TYPE = field<string>(
  'a media type such as image/png',
  (value) => typeof value === 'string' && /^[\w.+-]+\/[\w.+*-]+$/.test(value),
);
const EDITS = field<object[]>(
  'a list of at least one { by: text, note?: text, arguments: object }',
  (value) => Array.isArray(value) && value.length > 0 && value.every(isEdit),
);

type Kinds = Readonly<Record<string, ObjectField<Fields>>>;

const FILE = { filename: TEXT, providerOptions: OBJECT };
const TEXT_PART = openObject({ text: required(TEXT), providerOptions: OBJECT });

const USER_PARTS: Kinds = {
  text: TEXT_PART,
  image: openObject({ mediaType: MEDIA_TYPE, ...FILE }),
  file: openObject({ mediaType: required(MEDIA_TYPE), ...FILE }),
};

const ASSISTANT_PARTS: Kinds = {
  text: TEXT_PART,
  reasoning: TEXT_PART,
  file: openObject({ mediaType: required(MEDIA_TYPE), ...FILE, data: TEXT, url: TEXT }),
  'tool-call': openObject({
    callId: required(TEXT),
    name: required(TEXT),
    originalCallId: TEXT,
    provider: TEXT,
    arguments: OBJECT,
    rawArguments: TEXT,
    providerOptions: OBJECT,
  }),
  opaque: openObject({ value: required(anything()) }),
};

const TOOL_PARTS: Kinds = {
  'tool-result': openObject({
    callId: required(TEXT),
    name: required(TEXT),
    outcome: required(oneOf(Object.keys(OUTCOMES))),
    output: required(anything()),
    edits: EDITS,
  }),
};

function isEdit(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['by'] === 'string' &&
    (value['note'] === undefined || typeof value['note'] === 'string') &&
    isRecord(value['arguments'])
  );
}

/** @returns false after a report */
function isPart(part: unknown, kinds: Kinds, report: Report): part is Record<string, unknown> {
  const type = isRecord(part) ? part['type'] : undefined;
  const kind = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  if (!kind) report(`must be one of: ${Object.keys(kinds).join(', ')}`, 'type');
  const told = counted(report);
  kind?.read(part, told.report);
  return kind !== undefined && told.isEmpty();
}

function counted(report: Report): { report: Report; isEmpty: () => boolean } {
  let isEmpty = true;
  return {
    report: (...problem) => {
      isEmpty = false;
      return report(...problem);
    },
    isEmpty: () => isEmpty,
  };
}

// ---- reading them ----

function readMessages(given: unknown, report: Report): Message[] | undefined {
  if (!Array.isArray(given) || given.length === 0) return report('must be a list of at least one message');
  const told = counted(report);
  const read = given.map((message, index) => readMessage(message, within(`[${index}]`, message, told.report)));
  const last = read.at(-1);
  if (last && last.role !== 'user')
    told.report("must be 'user': a prompt ends with what the user says", `[${read.length - 1}].role`);
  const messages = read.filter((message) => message !== undefined);
  // Of parts that are none, nothing can be asked further.
  if (told.isEmpty()) checkCallsAreAnswered(messages, report);
  return messages;
}

function readMessage(value: unknown, report: Report): Message | undefined {
  const { role, content } = isRecord(value) ? value : {};
  const inContent = within('content', content, report);
  switch (role) {
    case 'user': {
      const parts = readUserContent(content, inContent);
      return parts && { role, content: parts };
    }
    case 'system':
      if (typeof content === 'string' && !isBlankText(content)) return { role, content };
      return inContent('must be text that is not blank');
    case 'assistant': {
      const parts =
        typeof content === 'string'
          ? [{ type: 'text', text: content } as const]
          : readParts<AssistantPart>(content, ASSISTANT_PARTS, inContent);
      return parts && { role, content: parts };
    }
    case 'tool': {
      const parts = readParts<ToolResultPart>(content, TOOL_PARTS, inContent);
      return parts && { role, content: parts };
    }
    default:
      report('must be one of: user, assistant, system, tool', 'role');
      if (typeof content !== 'string' && !Array.isArray(content)) inContent('must be text or a list of parts');
      return undefined;
  }
}

function readUserContent(content: unknown, report: Report): UserPart[] | undefined {
  if (typeof content === 'string')
    return isBlankText(content) ? report('must not be blank') : [{ type: 'text', text: content }];
  if (!Array.isArray(content) || content.length === 0) return report('must be text or a list of parts');
  const parts = content
    .map((part, index) => readUserPart(part, within(`[${index}]`, part, report)))
    .filter((part) => part !== undefined);
  // Of parts that are none, the problem is told already.
  if (parts.length > 0 && parts.every((part) => part.type === 'text' && isBlankText(part.text)))
    return report('must not be blank');
  return parts;
}

function readUserPart(part: unknown, report: Report): UserPart | undefined {
  if (!isPart(part, USER_PARTS, report)) return undefined;
  const { type, text, mediaType = 'image/*', filename, providerOptions: given, image, data, url } = part;
  const read = given === undefined ? undefined : jsonObject().read(given, within('providerOptions', given, report));
  const options = read && { providerOptions: read };
  if (type === 'text') return { type, text: text as string, ...options };
  const media = readMedia((type === 'image' ? image : undefined) ?? data ?? url);
  if (!media) return report('must have bytes, base64 text, or an http(s) URL');
  const name = filename === undefined ? undefined : { filename: filename as string };
  return { type: 'file', mediaType: mediaType as string, ...media, ...name, ...options };
}

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
function readParts<P>(content: unknown, kinds: Kinds, report: Report): P[] | undefined {
  if (!Array.isArray(content) || content.length === 0) return report('must be a list of at least one part');
  for (const [index, part] of content.entries()) {
    const inPart = within(`[${index}]`, part, report);
    if (!isPart(part, kinds, inPart) || part['type'] !== 'file') continue;
    const { data, url } = part;
    if ((data === undefined) === (url === undefined) || (url !== undefined && !URL.canParse(url as string)))
      inPart('must have base64 text in data, or an address in url');
  }
  return json().read(content, report) as P[] | undefined;
}

/** Providers demand it (I5): every call in the history is answered, in order, by the message right after it. */
function checkCallsAreAnswered(messages: readonly Message[], report: Report): void {
  messages.forEach((message, index) => {
    const calls =
      message.role === 'assistant'
        ? message.content.flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []))
        : [];
    const next = messages[index + 1];
    const results = next?.role === 'tool' ? next.content.map(({ callId }) => callId) : [];
    if (calls.length > 0 && calls.join('\n') !== results.join('\n'))
      report('has calls that the next message does not answer one by one, in order', `[${index}]`);
    const before = messages[index - 1];
    const hasCalls = before?.role === 'assistant' && before.content.some(({ type }) => type === 'tool-call');
    if (message.role === 'tool' && !hasCalls)
      report('has results without the calls they answer right before', `[${index}]`);
  });
}
