/** What the parts of a caller's own messages must be, field by field: whoever reads them later, a model client above all, relies on it. */
import type { ToolOutcome } from '../../contracts/message.js';
import { isRecord, type FieldProblem } from './read-start-options.js';

interface FieldRule {
  /** What it must be. */
  words: string;
  fits(this: void, value: unknown): boolean;
  isOptional?: true;
}

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

const TEXT: FieldRule = { words: 'text', fits: (value) => typeof value === 'string' };
const OBJECT: FieldRule = { words: 'an object', fits: isRecord };
const PRESENT: FieldRule = { words: 'given', fits: (value) => value !== undefined };
const MEDIA_TYPE: FieldRule = {
  words: 'a media type such as image/png',
  fits: (value) => typeof value === 'string' && /^[\w.+-]+\/[\w.+*-]+$/.test(value),
};
const OUTCOME: FieldRule = {
  words: `one of ${Object.keys(OUTCOMES).join(', ')}`,
  fits: (value) => typeof value === 'string' && Object.hasOwn(OUTCOMES, value),
};
const EDITS: FieldRule = {
  words: 'a list of at least one { by: text, note?: text, arguments: object }',
  fits: (value) => Array.isArray(value) && value.length > 0 && value.every(isEdit),
};

const optional = (rule: FieldRule): FieldRule => ({ ...rule, isOptional: true });
const OPTIONS = { providerOptions: optional(OBJECT) };

export type PartRules = Readonly<Record<string, Readonly<Record<string, FieldRule>>>>;

const FILE = { mediaType: MEDIA_TYPE, filename: optional(TEXT), ...OPTIONS };
const TEXT_PART = { text: TEXT, ...OPTIONS };

export const USER_PARTS: PartRules = {
  text: TEXT_PART,
  image: { ...FILE, mediaType: optional(MEDIA_TYPE) },
  file: FILE,
};

export const ASSISTANT_PARTS: PartRules = {
  text: TEXT_PART,
  reasoning: TEXT_PART,
  file: { ...FILE, data: optional(TEXT), url: optional(TEXT) },
  'tool-call': {
    callId: TEXT,
    name: TEXT,
    originalCallId: optional(TEXT),
    provider: optional(TEXT),
    arguments: optional(OBJECT),
    rawArguments: optional(TEXT),
    ...OPTIONS,
  },
  opaque: { value: PRESENT },
};

export const TOOL_PARTS: PartRules = {
  'tool-result': { callId: TEXT, name: TEXT, outcome: OUTCOME, output: PRESENT, edits: optional(EDITS) },
};

/** @returns false after adding to the problems */
export function isPart(
  part: unknown,
  kinds: PartRules,
  field: string,
  problems: FieldProblem[],
): part is Record<string, unknown> {
  const fields: Record<string, unknown> = isRecord(part) ? part : {};
  const rules = typeof fields.type === 'string' && Object.hasOwn(kinds, fields.type) ? kinds[fields.type] : undefined;
  if (!rules) {
    problems.push({ field: `${field}.type`, problem: `must be one of ${Object.keys(kinds).join(', ')}` });
    return false;
  }
  const broken = Object.entries(rules).filter(([name, { fits, isOptional }]) => {
    const value = fields[name];
    return !(isOptional && value === undefined) && !fits(value);
  });
  for (const [name, { words }] of broken) problems.push({ field: `${field}.${name}`, problem: `must be ${words}` });
  return broken.length === 0;
}

function isEdit(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value.by === 'string' &&
    (value.note === undefined || typeof value.note === 'string') &&
    isRecord(value.arguments)
  );
}
