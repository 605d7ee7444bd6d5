import { isExactNumber, isJsonObject, type JsonObject, type JsonValue } from '../../contracts/json.js';
import { isDate, isDateTime } from '../../contracts/iso-time.js';
import { pathText, type PathStep } from './json-domain.js';
import { MAX_PROBLEMS, truncateText } from './plain-text.js';

/** Subschemas, listed values and required names that one schema may have together. */
export const MAX_SCHEMA_PARTS = 1_000;
/** Schemas inside each other. */
export const MAX_SCHEMA_DEPTH = 16;
/** Values and comparisons that one check may take. */
export const MAX_CHECK_STEPS = 50_000;

/** What is wrong with a keyword's value, as a sentence; null when nothing is. */
type Keyword = (value: JsonValue, at: SchemaPlace) => string | null;

/** Where a walk through a schema is, and how much of its allowance is left. */
interface SchemaPlace {
  path: string;
  depth: number;
  budget: { parts: number };
}

const must =
  (words: string, fits: (value: JsonValue) => boolean): Keyword =>
  (value, { path }) =>
    fits(value) ? null : `${path} must be ${words}`;

const listOf = (words: string, isItem: (item: JsonValue) => boolean): Keyword => {
  const whole = must(words, (value) => Array.isArray(value) && value.length > 0 && value.every(isItem));
  return (value, at) => {
    if (Array.isArray(value)) at.budget.parts -= value.length;
    return at.budget.parts < 0 ? null : whole(value, at);
  };
};

const isType = (value: JsonValue): boolean => typeof value === 'string' && Object.hasOwn(TYPES, value);
const size = must('a whole number of at least 0', (value) => Number.isSafeInteger(value) && (value as number) >= 0);
const limit = must('a number', (value) => typeof value === 'number');
const annotation: Keyword = () => null;

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  type: (value, at) =>
    must(`one of ${Object.keys(TYPES).join(', ')}, or a list of them`, (type) =>
      Array.isArray(type) ? type.length > 0 && type.length <= 7 && type.every(isType) : isType(type),
    )(value, at),
  enum: listOf('a list of texts, numbers, booleans or null', isScalar),
  const: must('a text, a number, a boolean or null', isScalar),
  minimum: limit,
  maximum: limit,
  exclusiveMinimum: limit,
  exclusiveMaximum: limit,
  minLength: size,
  maxLength: size,
  minItems: size,
  maxItems: size,
  required: listOf('a list of property names', (item) => typeof item === 'string'),
  additionalProperties: must('true or false', (value) => typeof value === 'boolean'),
  format: (value, at) => must(`one of ${Object.keys(FORMATS).join(', ')}`, isFormat)(value, at),
  items: subschema,
  properties: (value, at) => {
    if (!isJsonObject(value)) return `${at.path} must be an object`;
    for (const [name, item] of Object.entries(value)) {
      const problem = subschema(item, { ...at, path: `${at.path}.${truncateText(name, 100)}` });
      if (problem !== null || at.budget.parts < 0) return problem;
    }
    return null;
  },
  title: annotation,
  description: annotation,
  default: annotation,
  examples: annotation,
  $schema: annotation,
};

/**
 * What keeps a JSON Schema from being one that answers can be checked against, in words; null when nothing does. Such
 * schemas come from models, tools and users, so they are data: a closed subset that {@link checkAnswer} interprets,
 * without patterns, references and anything that would have to be compiled.
 */
export function schemaProblem(schema: JsonValue): string | null {
  const budget = { parts: MAX_SCHEMA_PARTS };
  const problem = subschema(schema, { path: 'schema', depth: 0, budget });
  return budget.parts < 0 ? `schema has more than ${MAX_SCHEMA_PARTS} parts` : problem;
}

function subschema(schema: JsonValue, { path, depth, budget }: SchemaPlace): string | null {
  if (!isJsonObject(schema)) return `${path} must be an object`;
  if (depth >= MAX_SCHEMA_DEPTH) return `schema has more than ${MAX_SCHEMA_DEPTH} levels`;
  if (--budget.parts < 0) return null;
  for (const [name, value] of Object.entries(schema)) {
    const at = { path: `${path}.${truncateText(name, 100)}`, depth: depth + 1, budget };
    const keyword = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name] : undefined;
    if (!keyword) return `${at.path} is not supported; use ${Object.keys(KEYWORDS).join(', ')}`;
    const problem = keyword(value, at);
    if (problem !== null || budget.parts < 0) return problem;
  }
  return null;
}

export interface AnswerCheck {
  /** Empty when the value fits; the first {@link MAX_PROBLEMS} otherwise. */
  problems: string[];
  /** Values looked at and comparisons made, at most {@link MAX_CHECK_STEPS}. */
  steps: number;
}

/** @param schema one without a {@link schemaProblem}; keywords that are not of the subset are not looked at */
export function checkAnswer(schema: JsonObject, value: JsonValue): AnswerCheck {
  const walk = new AnswerWalk();
  walk.visit(schema, value);
  return { problems: walk.problems, steps: Math.min(walk.steps, MAX_CHECK_STEPS) };
}

class AnswerWalk {
  readonly problems: string[] = [];
  steps = 0;
  private readonly path: PathStep[] = [];

  visit(schema: JsonObject, value: JsonValue): void {
    if (!this.spend(1)) return;
    const { type, enum: choices, const: only, format } = schema;
    if (type !== undefined && ![type].flat().some((name) => TYPES[name as string]?.(value)))
      return this.report(`must be ${[type].flat().join(' or ')}`);
    if (only !== undefined && value !== only) this.report(`must be ${JSON.stringify(only)}`);
    if (Array.isArray(choices) && this.spend(choices.length) && !choices.includes(value))
      this.report(`must be one of ${JSON.stringify(choices)}`);
    if (typeof value === 'number') this.range(schema, value, RANGES.number, '');
    else if (typeof value === 'string') {
      if ('minLength' in schema || 'maxLength' in schema)
        this.range(schema, [...value].length, RANGES.string, ' characters');
      if (isFormat(format) && !FORMATS[format as string]?.(value)) this.report(`must be a ${String(format)}`);
    } else if (Array.isArray(value)) this.list(schema, value);
    else if (isJsonObject(value)) this.object(schema, value);
  }

  private list(schema: JsonObject, value: JsonValue[]): void {
    this.range(schema, value.length, RANGES.array, ' items');
    if (!isJsonObject(schema.items)) return;
    for (const [index, item] of value.entries()) {
      if (this.isOver) return;
      this.within(index, schema.items, item);
    }
  }

  private object(schema: JsonObject, value: JsonObject): void {
    const properties = isJsonObject(schema.properties) ? schema.properties : {};
    for (const name of Array.isArray(schema.required) ? schema.required : []) {
      if (!this.spend(1)) return;
      if (!Object.hasOwn(value, name as string)) this.report(`must have ${truncateText(String(name), 100)}`);
    }
    for (const name of Object.keys(value)) {
      if (!this.spend(1)) return;
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (isJsonObject(property)) this.within(name, property, value[name] as JsonValue);
      else if (schema.additionalProperties === false) this.report(`must not have ${truncateText(name, 100)}`);
    }
  }

  private within(step: PathStep, schema: JsonObject, value: JsonValue): void {
    this.path.push(step);
    this.visit(schema, value);
    this.path.pop();
  }

  private range(schema: JsonObject, measured: number, rules: readonly RangeRule[], unit: string): void {
    for (const [keyword, words, fits] of rules) {
      const bound = schema[keyword];
      if (typeof bound === 'number' && !fits(measured, bound)) this.report(`must ${words} ${bound}${unit}`);
    }
  }

  private get isOver(): boolean {
    return this.problems.length >= MAX_PROBLEMS || this.steps > MAX_CHECK_STEPS;
  }

  private spend(steps: number): boolean {
    if (this.isOver) return false;
    this.steps += steps;
    if (this.steps <= MAX_CHECK_STEPS) return true;
    this.report('is too large to be checked');
    return false;
  }

  private report(problem: string): void {
    if (this.problems.length >= MAX_PROBLEMS) return;
    const path = this.path.length === 0 ? 'the answer' : pathText(this.path).slice(2);
    this.problems.push(`${path} ${problem}`);
  }
}

type RangeRule = readonly [keyword: string, words: string, fits: (measured: number, bound: number) => boolean];

const atLeast = (measured: number, bound: number): boolean => measured >= bound;
const atMost = (measured: number, bound: number): boolean => measured <= bound;

const RANGES: Readonly<Record<'number' | 'string' | 'array', readonly RangeRule[]>> = {
  number: [
    ['minimum', 'be at least', atLeast],
    ['maximum', 'be at most', atMost],
    ['exclusiveMinimum', 'be more than', (measured, bound) => measured > bound],
    ['exclusiveMaximum', 'be less than', (measured, bound) => measured < bound],
  ],
  string: [
    ['minLength', 'have at least', atLeast],
    ['maxLength', 'have at most', atMost],
  ],
  array: [
    ['minItems', 'have at least', atLeast],
    ['maxItems', 'have at most', atMost],
  ],
};

const TYPES: Readonly<Record<string, (value: JsonValue) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value) && isExactNumber(value as number),
  boolean: (value) => typeof value === 'boolean',
  object: isJsonObject,
  array: Array.isArray,
  null: (value) => value === null,
};

/** None of them can backtrack over more than a few characters. */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  'date-time': isDateTime,
  time: (text) => /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/.test(text),
  email: (text) => text.length <= 254 && /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => /^[A-Za-z][A-Za-z0-9+.-]{0,31}:[^\s]+$/.test(text),
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
};

function isFormat(value: unknown): boolean {
  return typeof value === 'string' && Object.hasOwn(FORMATS, value);
}

function isScalar(value: JsonValue): boolean {
  return typeof value !== 'object' || value === null;
}
