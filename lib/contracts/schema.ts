import { isRecord } from './json.js';
import { InvalidRequestError } from '../errors/request.errors.js';
import { isBlankText, isIdentifier, MAX_IDENTIFIER } from './text.js';
import { DURATION_RULE, durationMs } from './duration.js';
import { readInstant } from './iso-time.js';
import { metadataProblems, MAX_METADATA_KEYS } from './run-metadata.js';
import type { RunMetadata } from './run.js';

/** A field in the words of OpenAPI. */
export interface FieldDoc {
  readonly description?: string;
  readonly [keyword: string]: unknown;
}

/**
 * Takes a problem, as a predicate of the value (`must be text`).
 * @param path of the value within the one that is read, e.g. `[2].role`; default: the value itself
 * @param value at that path; default: the one that is read
 * @param known the names that are accepted, where the problem is an unknown one
 */
export type Report = (problem: string, path?: string, value?: unknown, known?: readonly string[]) => undefined;

/** One field of a request or of options: what it accepts, what becomes of it, and how it is documented. */
export interface Field<out T> {
  readonly doc: FieldDoc;
  readonly required?: boolean;
  /** An own property that is `undefined` is judged instead of counting as absent. */
  readonly judgesUndefined?: boolean;
  /** In a query its entries stand one by one, as `<name>.<key>=<text>`. */
  readonly isMap?: boolean;
  /** @returns undefined after a report */
  read(this: void, value: unknown, report: Report): T | undefined;
  /** The value that a parameter of a query stands for. What stands for none stays as it is, and `read` refuses it. */
  fromText?(this: void, text: unknown): unknown;
}

export type RequiredField<T> = Field<T> & { readonly required: true };
export type Fields = Readonly<Record<string, Field<unknown>>>;

type ValueOf<F> = F extends Field<infer T> ? T : never;

/** What a schema gives: only the fields that were given. */
export type Given<F extends Fields> = {
  [K in keyof F as F[K] extends RequiredField<unknown> ? K : never]: ValueOf<F[K]>;
} & { [K in keyof F as F[K] extends RequiredField<unknown> ? never : K]?: ValueOf<F[K]> };

/** The fields that a schema of `T` must have: all of them, the mandatory ones required. For `satisfies`. */
export type FieldsOf<T> = {
  readonly [K in keyof T]-?: undefined extends T[K] ? Field<Exclude<T[K], undefined>> : RequiredField<T[K]>;
};

/** What must hold between the fields of an object. Runs before them, on what is not verified yet. */
export type Rule = (given: Readonly<Record<string, unknown>>, report: Report) => void;

export interface ObjectField<F extends Fields> extends Field<Given<F>> {
  readonly fields: F;
  readonly rules: readonly Rule[];
  /** Whether names that are not of the schema are problems; otherwise they are left out. */
  readonly isClosed: boolean;
}

// ---- kinds of fields ----

/** @param must after "must be" */
export function field<T>(must: string, fits: (value: unknown) => boolean, doc: FieldDoc = {}): Field<T> {
  return { doc, read: (value, report) => (fits(value) ? (value as T) : report(`must be ${must}`)) };
}

export interface TextRules extends FieldDoc {
  /** In UTF-16 units; what is longer is refused, never cut. */
  maxLength?: number;
}

/** Text that is not blank. */
export function text(rules: TextRules = {}): Field<string> {
  const { maxLength = Number.POSITIVE_INFINITY } = rules;
  return {
    doc: { type: 'string', ...rules },
    read: (value, report) => {
      if (typeof value !== 'string') return report('must be text that is not blank');
      if (isBlankText(value)) return report('must not be blank');
      return value.length > maxLength ? report(`must have at most ${maxLength} characters`) : value;
    },
  };
}

export const anything = (doc: FieldDoc = {}): Field<never> => field('anything', () => true, doc);

export const IDENTIFIER_RULE = `must be 1 to ${MAX_IDENTIFIER} characters of A-Z a-z 0-9 . _ : -`;

export function identifier(description?: string): Field<string> {
  const doc = { type: 'string', maxLength: MAX_IDENTIFIER, ...(description !== undefined && { description }) };
  return field(IDENTIFIER_RULE.slice('must be '.length), isIdentifier, doc);
}

export const flag = (doc: FieldDoc = {}): Field<boolean> =>
  field('true or false', (value) => typeof value === 'boolean', { type: 'boolean', ...doc });

export const callback = <T>(): Field<T> => field('a function', (value) => typeof value === 'function');

/** Decimal digits of a query; never a sign, a fraction, an exponent or a blank. */
const digits = (given: unknown): unknown =>
  typeof given === 'string' && /^\d{1,16}$/.test(given) ? Number(given) : given;

export function wholeNumber(doc: FieldDoc & { minimum?: number; maximum?: number } = {}): Field<number> {
  const { minimum = 1, maximum = Number.MAX_SAFE_INTEGER } = doc;
  const range = 'maximum' in doc ? `from ${minimum} to ${maximum}` : `of at least ${minimum}`;
  const fits = (value: unknown): boolean =>
    Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum;
  return { ...field<number>(`a whole number ${range}`, fits, { type: 'integer', minimum, ...doc }), fromText: digits };
}

export function oneOf<const T extends string>(words: readonly T[], doc: FieldDoc = {}): Field<T> {
  const fits = (value: unknown): boolean => words.includes(value as T);
  return field(`one of: ${words.join(', ')}`, fits, { type: 'string', enum: [...words], ...doc });
}

/** One or several of the words. In a query the parameter is repeated, or has commas in between. */
export function severalOf<T extends string>(words: readonly T[], doc: FieldDoc = {}): Field<T[]> {
  const wanted = (value: unknown): unknown[] => [...new Set<unknown>(Array.isArray(value) ? value : [value])];
  return {
    doc: { type: 'array', items: { type: 'string', enum: [...words] }, ...doc },
    read: (value, report) =>
      wanted(value).every((one) => words.includes(one as T))
        ? (wanted(value) as T[])
        : report(`must be one or several of: ${words.join(', ')}`),
    fromText: (given) => {
      const parts = wanted(given).flatMap((part) => (typeof part === 'string' ? part.split(',') : [part]));
      return parts.length > 0 ? parts : given === undefined ? given : '';
    },
  };
}

/** @param must after "must be" */
export function texts(must = 'a list of texts'): Field<string[]> {
  const fits = (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((one) => typeof one === 'string');
  return {
    doc: { type: 'array', items: { type: 'string' } },
    read: (value, report) => (fits(value) ? [...value] : report(`must be ${must}`)),
  };
}

/** A point in time. */
export function moment(description?: string): Field<Date> {
  const at = (value: unknown): number => (value instanceof Date ? value.getTime() : Number.NaN);
  const words =
    'a valid Date from 1970 on; in a query a day or a time with its offset, like 2026-03-01 or 2026-03-01T09:30:00Z';
  return {
    ...field<Date>(words, (value) => Number.isSafeInteger(at(value)) && at(value) >= 0, {
      type: 'string',
      format: 'date-time',
      ...(description !== undefined && { description }),
    }),
    fromText: (given) => (typeof given === 'string' ? readInstant(given) : undefined) ?? given,
  };
}

/** Milliseconds. */
export const duration: Field<number> = {
  doc: { type: 'string' },
  read: (value, report) => durationMs(value) ?? report(DURATION_RULE),
};

export function metadata(maxKeys: number = MAX_METADATA_KEYS): Field<RunMetadata> {
  return {
    doc: {
      type: 'object',
      additionalProperties: { oneOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }] },
    },
    isMap: true,
    read: (value, report) => {
      if (!isRecord(value)) return report('must be a flat object');
      const problems = metadataProblems(value, maxKeys);
      for (const { key, problem } of problems) report(problem, key);
      return problems.length > 0 ? undefined : (Object.fromEntries(Object.entries(value)) as RunMetadata);
    },
  };
}

export function required<T>(given: Field<T>): RequiredField<T> {
  return { ...given, required: true };
}

/** Null is as good as nothing. */
export function nullable<T>(given: Field<T>): Field<T> {
  return { ...given, read: (value, report) => (value === null ? undefined : given.read(value, report)) };
}

// ---- objects ----

export function object<F extends Fields>(fields: F, ...rules: Rule[]): ObjectField<F> {
  return objectField(fields, rules, true);
}

/** Takes what it knows of any object, inherited getters included, whatever other names there are. */
export function openObject<F extends Fields>(fields: F): ObjectField<F> {
  return objectField(fields, [], false);
}

function objectField<F extends Fields>(fields: F, rules: readonly Rule[], isClosed: boolean): ObjectField<F> {
  const schema: ObjectField<F> = {
    doc: { type: 'object' },
    fields,
    rules,
    isClosed,
    read: (value, report) =>
      isRecord(value) ? readFields(schema, value, report, 'values') : report('must be an object'),
  };
  return schema;
}

/** Without some of the fields, which then are names that are not known. */
export function omit<F extends Fields, K extends keyof F>(
  { fields, rules }: ObjectField<F>,
  ...names: K[]
): ObjectField<Omit<F, K>> {
  const left = Object.entries(fields).filter(([name]) => !names.includes(name as K));
  return object(Object.fromEntries(left) as unknown as Omit<F, K> & Fields, ...rules);
}

/** Exactly one of the fields is given. */
export const exactlyOneOf =
  (first: string, ...others: string[]): Rule =>
  (given, report) => {
    if ([first, ...others].filter((name) => has(given, name)).length === 1) return;
    report(`is required, or ${others.join(', or ')}: exactly one of them`, first);
  };

/** A field that goes with one value of another. */
export const onlyWith =
  (name: string, other: string, value: unknown): Rule =>
  (given, report) => {
    if (has(given, name) && given[other] !== value) report(`goes with ${other} ${String(value)} only`, name);
  };

export function has(given: object, name: string): boolean {
  return Object.hasOwn(given, name) && (given as Record<string, unknown>)[name] !== undefined;
}

/** How the values stand in their object: `options` may inherit them, those of a `query` are texts. */
type Source = 'values' | 'options' | 'query';

export function readFields<F extends Fields>(
  { fields, rules, isClosed }: ObjectField<F>,
  given: Readonly<Record<string, unknown>>,
  report: Report,
  source: Source,
): Given<F> {
  const inherits = source === 'options' || !isClosed;
  for (const rule of rules) rule(given, report);
  const read: Record<string, unknown> = {};
  for (const [name, one] of Object.entries<Field<unknown>>(fields)) {
    const isGiven = inherits || Object.hasOwn(given, name);
    const value = source === 'query' ? fromQuery(given, name, one) : isGiven ? given[name] : undefined;
    if (value === undefined && !(one.judgesUndefined && Object.hasOwn(given, name))) {
      // A getter of a class must not be passed over without a word.
      if (!inherits && name in given && !Object.hasOwn(given, name))
        report('must be a property of the object itself', name);
      else if (one.required) report('is required', name);
      continue;
    }
    const result = one.read(value, within(name, value, report));
    if (result !== undefined) read[name] = result;
  }
  if (isClosed) reportUnknown(fields, given, report, source === 'query');
  return read as Given<F>;
}

function reportUnknown(fields: Fields, given: object, report: Report, isQuery: boolean): void {
  const known = Object.keys(fields);
  const isKnown = (name: string): boolean => {
    const [first = ''] = isQuery ? name.split('.', 1) : [name];
    return Object.hasOwn(fields, first) && (!isQuery || (fields[first]?.isMap ?? false) === name.includes('.'));
  };
  for (const name of Object.keys(given).filter((one) => !isKnown(one))) {
    const near = name.length > 40 ? undefined : known.find((one) => isNear(one, name));
    report(`is not known here${near === undefined ? '' : `; did you mean ${near}?`}`, name, undefined, known);
  }
}

function fromQuery(given: Readonly<Record<string, unknown>>, name: string, one: Field<unknown>): unknown {
  if (!one.isMap) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    return value === undefined || !one.fromText ? value : one.fromText(value);
  }
  const entries = Object.entries(given).filter(([key]) => key.startsWith(`${name}.`));
  return entries.length === 0
    ? undefined
    : Object.fromEntries(entries.map(([key, value]) => [key.slice(name.length + 1), value]));
}

/** Reports of a part: paths are told from the whole. */
export function within(name: string, value: unknown, report: Report): Report {
  return (problem, path = '', at = value, known = undefined) =>
    report(problem, path === '' || path.startsWith('[') ? `${name}${path}` : `${name}.${path}`, at, known);
}

/** One letter more, less, other or in another place; other case. */
function isNear(known: string, given: string): boolean {
  const [a, b] = [known.toLowerCase(), given.toLowerCase()];
  if (Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  return (
    restA.slice(1) === restB ||
    restA === restB.slice(1) ||
    restA.slice(1) === restB.slice(1) ||
    (restA.slice(2) === restB.slice(2) && restA[0] === restB[1] && restA[1] === restB[0])
  );
}

// ---- reading requests ----

export interface FieldProblem {
  /** Path of the field, e.g. `budget.maxTotalTokens`; cut when it is very long, empty for the whole. */
  field: string;
  /** As a predicate: `must be text`. */
  problem: string;
}

export interface RequestSource {
  /** Stands in problems for the whole. Default: nothing. */
  root?: string;
  /** Whether values are texts of a query. Default false. */
  isQuery?: boolean;
}

/**
 * Reads what nobody has verified, strictly: no conversion (`"false"` is text, never a flag), own properties only,
 * unknown names refused.
 * @throws InvalidRequestError with all problems in `details.fields`
 */
export function readRequest<F extends Fields>(
  schema: ObjectField<F>,
  value: unknown,
  { root = '', isQuery = false }: RequestSource = {},
): Given<F> {
  const problems: FieldProblem[] = [];
  const report: Report = (problem, path = root) => void problems.push({ field: shortened(path), problem });
  const read = isRecord(value)
    ? readFields(schema, value, report, isQuery ? 'query' : 'values')
    : report('must be an object');
  if (problems.length > 0) throw invalidRequest(problems);
  return read as Given<F>;
}

/** @throws InvalidRequestError */
export function requireId(name: string, value: unknown): string {
  if (isIdentifier(value)) return value;
  throw invalidRequest([{ field: name, problem: IDENTIFIER_RULE }]);
}

/** For options that become one request with arguments. @throws InvalidRequestError where they are no object */
export function requireOptions(options: unknown): void {
  if (!isRecord(options)) throw invalidRequest([{ field: '', problem: 'must have options that are an object' }]);
}

/** Problems in `details.fields`, and in the message. */
const MAX_PROBLEMS = 50;
const MAX_WORDS = 10;

export function invalidRequest(problems: FieldProblem[]): InvalidRequestError {
  const words = problems.slice(0, MAX_WORDS).map(({ field: name, problem }) => `${name || 'it'} ${problem}`);
  const more = problems.length - words.length;
  return new InvalidRequestError(
    `The request is not valid: ${words.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`,
    { details: { fields: problems.slice(0, MAX_PROBLEMS) } },
  );
}

function shortened(path: string): string {
  const points = Array.from(path.slice(0, 202));
  return points.length > 100 ? `${points.slice(0, 100).join('')}…` : path;
}
