/** Values drawn from one seed. The same seed draws the same values on every machine. */

/** 32 bits of a text, for seeds that are given as words or commit hashes. */
export function hash32(text) {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** Keys that objects of JavaScript have a meaning for. */
const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'length', 'toJSON', 'then', '$ref', '', ' ', 'ключ'];

const TEXTS = [
  '',
  ' ',
  '\u0000',
  '\ud800',
  '\u200b',
  '𝕏',
  'null',
  'true',
  '[object Object]',
  '__proto__',
  '../../etc/passwd',
  '%00',
  '%E0%A4',
  '<script>',
  "'; DROP TABLE agent_runs; --",
  '{{7*7}}',
  '1e400',
  'NaN',
  'functions.echo:0',
];

const NUMBERS = [0, -0, 1, -1, 0.1, 1e21, 1e-7, 2 ** 31, 2 ** 53 - 1, 2 ** 53, -(2 ** 53) - 2, 5e-324, 1.7e308];

/** JSON text that no value of JavaScript is written as. */
const RAW = [
  '9007199254740993',
  '76561198016705746',
  '1e400',
  '-1e999',
  '0.1000000000000000055511151231257827',
  '123456789012345678901234567890',
  '-0',
];

export class Chance {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** At least 0, below 1 (mulberry32). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** From 0 to below `end`. */
  below(end) {
    return Math.floor(this.next() * end);
  }

  is(probability) {
    return this.next() < probability;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** Mostly short; now and then as long as `longest`. */
  text(longest = 262_144) {
    if (this.is(0.5)) return this.pick(TEXTS);
    const length = this.is(0.002) ? this.below(longest) : this.below(24);
    const unit = this.is(0.2) ? this.pick(TEXTS) || 'a' : String.fromCharCode(32 + this.below(95));
    return unit.repeat(Math.ceil(length / unit.length));
  }

  /** A value of JSON. `__proto__` is a key like any other in it. */
  json(depth = 4) {
    const kind = this.below(depth > 0 ? 8 : 5);
    if (kind === 0) return null;
    if (kind === 1) return this.is(0.5);
    if (kind === 2) return this.pick(NUMBERS);
    if (kind === 3 || kind === 4) return this.text(2_000);
    if (kind === 5) return Array.from({ length: this.below(5) }, () => this.json(depth - 1));
    return this.object(depth - 1);
  }

  object(depth = 3) {
    const entries = Array.from({ length: this.below(5) }, () => [this.key(), this.json(depth)]);
    return Object.fromEntries(entries);
  }

  key() {
    return this.is(0.3) ? this.pick(KEYS) : this.pick(['a', 'b', 'cents', 'id', 'type', 'name', 'note', 'to']);
  }

  /** Something of many parts or deep: what takes long to walk. */
  bulk() {
    const size = this.pick([1_000, 10_000, 50_000]);
    switch (this.below(5)) {
      case 0:
        return Object.fromEntries(Array.from({ length: size / 10 }, (_, index) => [`k${index}`, index]));
      case 1:
        return Array.from({ length: size }, (_, index) => index);
      case 2: {
        let nested = 1;
        for (let level = 0; level < Math.min(size, 9_000); level++) nested = this.is(0.5) ? [nested] : { a: nested };
        return nested;
      }
      case 3:
        return 'a'.repeat(size * 4);
      default:
        return Array.from({ length: size / 20 }, () => ({ cents: '1', note: {} }));
    }
  }

  /** A copy of `value` with something in it removed, doubled or replaced. */
  mutated(value) {
    const copy = structuredClone(value);
    const places = [];
    const visit = (node) => {
      if (typeof node !== 'object' || node === null) return;
      for (const key of Object.keys(node)) {
        places.push([node, key]);
        visit(node[key]);
      }
    };
    visit(copy);
    for (let times = 1 + this.below(3); times > 0 && places.length > 0; times--) {
      const [parent, key] = this.pick(places);
      if (this.is(0.25)) delete parent[key];
      else if (this.is(0.1)) parent[key] = this.bulk();
      else if (this.is(0.2) && Array.isArray(parent)) parent.push(parent[key] ?? null);
      else parent[key] = this.json(2);
    }
    return copy;
  }

  /** JSON text of a value, damaged now and then, with numbers that cannot be represented. */
  jsonText(value) {
    let text = stringify(value);
    if (this.is(0.15)) text = text.replace(/(?<=[:[,])-?\d+(?=[,}\]])/, () => this.pick(RAW));
    if (this.is(0.1)) text = text.slice(0, this.below(text.length + 1));
    if (this.is(0.05)) text = text.replaceAll('"', this.pick(["'", '\\"', '“']));
    if (this.is(0.03)) text += this.pick(['}', ']', 'x', '{}', '\u0000']);
    return text;
  }
}

/** Deep values too, which `JSON.stringify` has no stack for. */
export function stringify(value) {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch {
    return '['.repeat(9_000) + ']'.repeat(9_000);
  }
}
