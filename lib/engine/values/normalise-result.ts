import { isExactNumber, type JsonObject, type JsonValue, setOwn } from '../../contracts/json.js';
import { INEXACT_NUMBER, jsonStringBytes, MAX_JSON_DEPTH, type PathStep, pathText } from './json-domain.js';
import { recordedText, thrownMessage } from './recorded-error.js';
import { truncateText } from './plain-text.js';

export interface ResultLimits {
  /** UTF-8 bytes of the JSON text. */
  maxBytes: number;
  /** Objects and arrays inside each other, the outermost included. Default 128. */
  maxDepth?: number;
  /**
   * Refuses numbers that a parser may have rounded, instead of taking them as they are. For what callers give; a tool's
   * own numbers are what they are.
   */
  exactNumbers?: boolean;
}

export type NormalisedResult =
  | {
      ok: true;
      value: JsonValue;
      /** What was lost on the way, for the journal; the first 20 and a count of the others. */
      notes: string[];
      /** UTF-8 bytes of the JSON text. */
      bytes: number;
    }
  | { ok: false; path: string; problem: string };

/**
 * A tool's result as the one JSON value that the journal, the model, REST, SSE and a restart see. Follows the rules of
 * `JSON.stringify`, with the differences below; what those rules would silently lose has no form here, because its
 * effect has happened and somebody must look. Never throws, whatever the value's getters, Proxies or `toJSON` do; the
 * copy shares nothing with the original and changes no prototype.
 *
 * | value | becomes |
 * | --- | --- |
 * | `undefined` at the top or in an array, a hole | `null` |
 * | `undefined` as a property | no property |
 * | BigInt | decimal text |
 * | NaN, ±Infinity, an invalid Date | `null`, with a note |
 * | -0 | 0 |
 * | Error | `{ name, message }`, its `toJSON`, cause and other properties ignored: they carry requests and keys |
 * | anything else with `toJSON` (Date, URL, Buffer …) | what that returns |
 * | Map, Set, weak collections, promises and thenables, functions, symbols, RegExp, ArrayBuffer, generators and other
 *   iterables without properties, Blob, Request, Response; cycles; a throwing getter, Proxy or `toJSON`; deeper or larger
 *   than the limits | no form: the path is told |
 */
export function normaliseResult(value: unknown, limits: ResultLimits): NormalisedResult {
  const copy = new JsonCopy(limits.maxBytes, limits.maxDepth ?? MAX_JSON_DEPTH, limits.exactNumbers ?? false);
  try {
    const json = copy.orNull(value, '');
    return { ok: true, value: json, notes: copy.notes(), bytes: copy.bytes };
  } catch (error) {
    // Asked of the walk, not of what was thrown: that may be anything the host's code made.
    const problem = copy.refusal ?? `could not be read: ${truncateText(recordedText(thrownMessage(error)), 200)}`;
    return { ok: false, path: pathText(copy.path), problem };
  }
}

const MAX_NOTES = 20;

/** By `Object.prototype.toString`, which also recognises values of another realm. */
const FORMLESS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    Map: 'a Map',
    Set: 'a Set',
    WeakMap: 'a WeakMap',
    WeakSet: 'a WeakSet',
    WeakRef: 'a WeakRef',
    Promise: 'a Promise',
    RegExp: 'a RegExp',
    Symbol: 'a symbol',
    ArrayBuffer: 'an ArrayBuffer',
    SharedArrayBuffer: 'a SharedArrayBuffer',
    DataView: 'a DataView',
    Generator: 'a generator',
    AsyncGenerator: 'a generator',
    Blob: 'a Blob',
    File: 'a File',
    Request: 'a Request',
    Response: 'a Response',
  }),
);

class JsonCopy {
  readonly path: PathStep[] = [];
  bytes = 0;
  /** Why the walk ended early; its path says where. */
  refusal: string | null = null;
  private readonly ancestors = new Set<object>();
  private readonly kept: string[] = [];
  private noteCount = 0;

  constructor(
    private readonly maxBytes: number,
    private readonly maxDepth: number,
    private readonly exactNumbers: boolean,
  ) {}

  notes(): string[] {
    const more = this.noteCount - this.kept.length;
    return more > 0 ? [...this.kept, `${more} more`] : this.kept;
  }

  /** Counts what a piece of JSON text costs, so that a huge value is refused before it is built. */
  spend<T>(value: T, bytes: number): T {
    this.bytes += bytes;
    if (this.bytes > this.maxBytes) this.refuse(`makes the result larger than ${this.maxBytes} bytes`);
    return value;
  }

  /** As `of`, for a place that must hold something. */
  orNull(value: unknown, key: string): JsonValue {
    const json = this.of(value, key);
    return json === undefined ? this.spend(null, 4) : json;
  }

  /** The value as JSON; undefined where `JSON.stringify` would write nothing. */
  of(value: unknown, key: string): JsonValue | undefined {
    switch (typeof value) {
      case 'undefined':
        return undefined;
      case 'boolean':
        return this.spend(value, value ? 4 : 5);
      case 'number':
        return this.number(value);
      case 'bigint':
        return this.text(value.toString());
      case 'string':
        return this.text(value);
      case 'symbol':
        return this.refuse('is a symbol, which has no JSON form');
      default:
        return value === null ? this.spend(null, 4) : this.object(value as object, key);
    }
  }

  private refuse(problem: string): never {
    this.refusal = problem;
    throw new Error(problem);
  }

  private text(text: string): string {
    return this.spend(text, jsonStringBytes(text, this.maxBytes - this.bytes));
  }

  private number(number: number): JsonValue {
    if (this.exactNumbers && !isExactNumber(number)) this.refuse(INEXACT_NUMBER);
    if (!Number.isFinite(number)) return this.lost('non-finite number');
    const settled = number === 0 ? 0 : number;
    return this.spend(settled, String(settled).length);
  }

  private lost(what: string): null {
    this.noteCount++;
    if (this.kept.length < MAX_NOTES) this.kept.push(`${what} at ${pathText(this.path)} became null`);
    return this.spend(null, 4);
  }

  private object(value: object, key: string): JsonValue | undefined {
    const tag = Object.prototype.toString.call(value).slice(8, -1);
    if (tag === 'Error' || tag === 'DOMException' || value instanceof Error) return this.error(value);
    const toJson: unknown = (value as { toJSON?: unknown }).toJSON;
    if (typeof toJson !== 'function') return this.container(value, tag);
    const form: unknown = toJson.call(value, key);
    if (tag === 'Date' && form === null) return this.lost('invalid date');
    // `toJSON` is asked once: what it returns is taken as it is.
    if ((typeof form !== 'object' && typeof form !== 'function') || form === null) return this.of(form, key);
    const formTag = Object.prototype.toString.call(form).slice(8, -1);
    return formTag === 'Error' || form instanceof Error ? this.error(form) : this.container(form, formTag);
  }

  private error(error: object): JsonValue {
    const { name, message } = error as { name?: unknown; message?: unknown };
    const isText = typeof message !== 'object' && typeof message !== 'function' && message !== undefined;
    const view = {
      name: typeof name === 'string' && name !== '' ? name : 'Error',
      message: isText ? String(message) : '',
    };
    return this.container(view, 'Object');
  }

  private container(value: object, tag: string): JsonValue {
    if (typeof value === 'function') this.refuse('is a function, which has no JSON form');
    const boxed = unboxed(value, tag);
    if (boxed !== undefined) return this.of(boxed, '') as JsonValue;
    const formless = FORMLESS.get(tag) ?? (isThenable(value) ? 'a promise-like object' : undefined);
    if (formless !== undefined) this.refuse(`is ${formless}, which has no JSON form`);
    if (this.ancestors.has(value)) this.refuse('refers back to an object that contains it');
    if (this.ancestors.size >= this.maxDepth) this.refuse(`is nested deeper than ${this.maxDepth} levels`);
    this.ancestors.add(value);
    const copy = Array.isArray(value) ? this.array(value) : this.properties(value);
    this.ancestors.delete(value);
    return copy;
  }

  private array(array: readonly unknown[]): JsonValue[] {
    const { length } = array;
    // At least one byte and a comma for each: a sparse array of a billion is refused, not walked.
    if (this.bytes + length * 2 > this.maxBytes) this.spend(null, length * 2 + 1);
    this.spend(null, 2 + Math.max(0, length - 1));
    const copy: JsonValue[] = [];
    for (let index = 0; index < length; index++) {
      this.path.push(index);
      copy.push(this.orNull(array[index], String(index)));
      this.path.pop();
    }
    return copy;
  }

  private properties(object: object): JsonObject {
    // A typed array is an object of many index keys: `{"0":1,…}`.
    const indexes = ArrayBuffer.isView(object) ? (object as Uint8Array).length : 0;
    if (this.bytes + indexes * 4 > this.maxBytes) this.spend(null, indexes * 4 + 1);
    const keys = Object.keys(object);
    if (keys.length === 0 && isIterable(object))
      this.refuse('is an iterable without properties, which has no JSON form');
    this.spend(null, 2);
    const copy: JsonObject = {};
    let written = 0;
    for (const key of keys) {
      this.path.push(key);
      const before = this.bytes;
      const value = this.of((object as Record<string, unknown>)[key], key);
      if (value !== undefined) {
        this.spend(null, jsonStringBytes(key, this.maxBytes - before) + (written === 0 ? 1 : 2));
        setOwn(copy, key, value);
        written++;
      }
      this.path.pop();
    }
    return copy;
  }
}

/** The primitive inside `new Number(1)` and its like; undefined for anything else, a look-alike included. */
function unboxed(value: object, tag: string): unknown {
  try {
    if (tag === 'Number') return Number.prototype.valueOf.call(value);
    if (tag === 'String') return String.prototype.valueOf.call(value);
    if (tag === 'Boolean') return Boolean.prototype.valueOf.call(value);
    if (tag === 'BigInt') return BigInt.prototype.valueOf.call(value);
  } catch {
    return undefined;
  }
  return undefined;
}

function isThenable(value: object): boolean {
  return typeof (value as { then?: unknown }).then === 'function';
}

function isIterable(value: object): boolean {
  const iterable = value as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown };
  return typeof iterable[Symbol.iterator] === 'function' || typeof iterable[Symbol.asyncIterator] === 'function';
}
