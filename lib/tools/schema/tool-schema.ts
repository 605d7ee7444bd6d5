import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';

/**
 * What a tool accepts (or returns), whichever library described it. `parse` gives the plain JSON input that is shown
 * to approvers, digested and executed; `revive` turns exactly that input into what the method is handed. Both are
 * pure.
 */
export interface ToolSchema {
  /** As shown to the model. */
  readonly jsonSchema: JsonObject;
  /** Validates, fills in defaults, coerces. Never throws for bad arguments. */
  parse(args: JsonObject): ParsedArguments | Promise<ParsedArguments>;
  /**
   * A fresh value for the method, from an input that `parse` gave of these arguments (default: the input), now or before a restart.
   * @throws InvalidToolArgumentsError where the schema neither takes the input back nor makes it of the arguments any more
   */
  revive(input: JsonObject, given?: JsonObject): unknown;
  /** The problems of a value; empty when it fits. */
  check(value: JsonValue): string[];
}

/** The JSON form of any value; undefined where it has none. */
export function toJson(value: unknown): JsonValue | undefined {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}

/** Path of the first own `__proto__` key: libraries drop, hide or obey it, so no tool is given one. */
export function findProtoKey(value: JsonValue, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const key in value) {
    const item = (value as JsonObject)[key] as JsonValue;
    if (key !== '__proto__' && (typeof item !== 'object' || item === null)) continue;
    const here = path === '' ? key : `${path}.${key}`;
    const found = key === '__proto__' ? here : findProtoKey(item, here);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A schema as a model gets it: some providers refuse the name of the dialect. */
export function withoutDialect({ $schema: _, ...schema }: JsonObject): JsonObject {
  return schema;
}
