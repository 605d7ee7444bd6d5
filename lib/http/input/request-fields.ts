/**
 * Reads an unverified body or query field by field, strictly (no conversion: `"false"` is text, never an approval), and collects every problem.
 * Only own properties count, so neither a prototype nor a `__proto__` key can stand in for a field; fields nobody asked for are named as well.
 */
import { isBlankText } from '../../contracts/blank-text.js';
import type { JsonObject } from '../../contracts/json.js';
import { readInstant } from '../../engine/values/iso-time.js';
import { InvalidRequestError } from '../../errors/request.errors.js';

export interface FieldProblem {
  /** Path of the field, e.g. `budget.maxTotalTokens`; cut when it is very long. */
  field: string;
  /** What it must be. */
  problem: string;
}

interface TextRules {
  required?: boolean;
  /** In UTF-16 units. */
  maxLength?: number;
  /** At least one character that is no white space. */
  notBlank?: boolean;
  pattern?: { test: RegExp; words: string };
}

const MAX_PROBLEMS = 50;

export class RequestFields {
  private readonly asked = new Set<string>();

  private constructor(
    private readonly source: Readonly<Record<string, unknown>>,
    private readonly problems: FieldProblem[],
    private readonly path: string,
  ) {}

  /**
   * @param source a parsed JSON body, or a parsed query; undefined counts as empty
   * @param read takes the fields it knows
   * @throws InvalidRequestError with all problems in `details.fields`
   */
  static read<T>(source: unknown, read: (fields: RequestFields) => T): T {
    const problems: FieldProblem[] = [];
    let result: T | undefined;
    if (isPlainObject(source ?? {}) && source !== null) {
      const fields = new RequestFields((source ?? {}) as Record<string, unknown>, problems, '');
      result = read(fields);
      fields.reportUnknown();
    } else {
      problems.push({ field: '(body)', problem: 'must be a JSON object' });
    }
    if (problems.length > 0) throw invalidRequest(problems);
    return result as T;
  }

  /** Names of all fields that are there. */
  names(): string[] {
    return Object.keys(this.source);
  }

  has(name: string): boolean {
    return Object.hasOwn(this.source, name) && this.source[name] !== undefined;
  }

  /** The value as it is. */
  any(name: string): unknown {
    this.asked.add(name);
    return this.has(name) ? this.source[name] : undefined;
  }

  report(name: string, problem: string): void {
    this.problems.push({ field: shorten(this.path + name), problem });
  }

  text(name: string, rules: TextRules = {}): string | undefined {
    const value = this.any(name);
    if (value === undefined) {
      if (rules.required) this.report(name, 'is required');
      return undefined;
    }
    const { maxLength = Number.POSITIVE_INFINITY, notBlank = false, pattern } = rules;
    if (typeof value !== 'string') this.report(name, 'must be text');
    else if (notBlank && isBlankText(value)) this.report(name, 'must not be blank');
    else if (value.length > maxLength) this.report(name, `must have at most ${maxLength} characters`);
    else if (pattern && !pattern.test.test(value)) this.report(name, pattern.words);
    else return value;
    return undefined;
  }

  /** A JSON boolean, nothing that merely looks like one. */
  flag(name: string): boolean | undefined {
    const value = this.any(name);
    if (value === undefined || typeof value === 'boolean') return value;
    this.report(name, 'must be true or false');
    return undefined;
  }

  /** A JSON number without a fraction, from 1 on. */
  positiveInteger(name: string, required = false): number | undefined {
    const value = this.any(name);
    if (value === undefined) {
      if (required) this.report(name, 'is required');
      return undefined;
    }
    if (Number.isSafeInteger(value) && (value as number) >= 1) return value as number;
    this.report(name, 'must be a whole number of at least 1');
    return undefined;
  }

  /** Decimal digits of a query, within bounds. */
  digits(name: string, min: number, max: number): number | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    this.report(
      name,
      max >= Number.MAX_SAFE_INTEGER ? `must be digits, at least ${min}` : `must be digits, ${min} to ${max}`,
    );
    return undefined;
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.any(name);
    if (value === undefined || choices.includes(value as T)) return value as T | undefined;
    this.report(name, `must be one of ${choices.join(', ')}`);
    return undefined;
  }

  /** One or several of the words: the parameter of a query repeated, or with commas in between. */
  choices<T extends string>(name: string, choices: readonly T[]): T[] | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const parts: unknown[] = Array.isArray(value) ? value : [value];
    const words = parts.flatMap((part) => (typeof part === 'string' ? part.split(',') : [part]));
    if (words.length > 0 && words.every((word) => choices.includes(word as T))) return [...new Set(words as T[])];
    this.report(name, `must be one or several of ${choices.join(', ')}`);
    return undefined;
  }

  /** A moment, as text. */
  instant(name: string): Date | undefined {
    const value = this.any(name);
    const at = typeof value === 'string' ? readInstant(value) : undefined;
    if (value !== undefined && !at)
      this.report(name, 'must be an ISO 8601 day or time with its offset, like 2026-03-01 or 2026-03-01T09:30:00Z');
    return at;
  }

  /** A nested object, read in the same way. */
  object<T>(name: string, read: (fields: RequestFields) => T): T | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    if (!isPlainObject(value)) {
      this.report(name, 'must be an object');
      return undefined;
    }
    const fields = new RequestFields(value, this.problems, `${this.path}${name}.`);
    const result = read(fields);
    fields.reportUnknown();
    return result;
  }

  /** A JSON object, whatever it holds. */
  json(name: string): JsonObject | undefined {
    const value = this.any(name);
    if (value === undefined || isPlainObject(value)) return value as JsonObject | undefined;
    this.report(name, 'must be a JSON object');
    return undefined;
  }

  private reportUnknown(): void {
    for (const name of Object.keys(this.source)) if (!this.asked.has(name)) this.report(name, 'is not known here');
  }
}

export function invalidRequest(problems: FieldProblem[]): InvalidRequestError {
  const fields = problems.slice(0, MAX_PROBLEMS);
  const words = fields.slice(0, 5).map(({ field, problem }) => `${field} ${problem}`);
  const more = problems.length - words.length;
  return new InvalidRequestError(`${words.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`, {
    details: { fields },
  });
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function shorten(field: string): string {
  const points = Array.from(field.slice(0, 202));
  return points.length > 100 ? `${points.slice(0, 100).join('')}…` : field;
}
