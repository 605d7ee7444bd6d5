import { copyJson, isJsonObject, isSameJson, type JsonObject, type JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';
import type { StandardIssue, StandardSchema } from '../../decorators/tool-value.js';
import { InvalidToolArgumentsError } from '../../errors/run.errors.js';
import { toJson, type ToolSchema, withoutDialect } from './tool-schema.js';

/**
 * Standard Schemas. Their output may be richer than JSON (dates, sets): the JSON of it is what is stored and shown, and the method gets the rich value
 * when validating that JSON again gives the same JSON, the plain JSON otherwise.
 */
export class StandardToolSchema implements ToolSchema {
  constructor(
    private readonly schema: StandardSchema,
    readonly jsonSchema: JsonObject,
  ) {}

  async parse(args: JsonObject): Promise<ParsedArguments> {
    const result = await this.schema['~standard'].validate(copyJson(args));
    if (result.issues) return { ok: false, problems: result.issues.map(problemOf) };
    const input = toJson(result.value);
    if (!isJsonObject(input)) return { ok: false, problems: ['the arguments must form an object'] };
    if (!isPlainJson(result.value) && !(await this.again(input)).same) {
      return {
        ok: false,
        problems: [
          'the schema gives a value that JSON cannot carry (a Date, Map, Set …) and does not accept the JSON of it back; make the transformation in the tool instead',
        ],
      };
    }
    return { ok: true, input };
  }

  async revive(input: JsonObject, given = input): Promise<unknown> {
    const { same, value } = await this.again(input);
    if (same) return value;
    // A transformation that cannot be applied twice: what it still makes of the arguments, where that is plain JSON.
    const result = await this.schema['~standard'].validate(copyJson(given));
    if (!result.issues && isPlainJson(result.value) && isSameJson(toJson(result.value), input)) return copyJson(input);
    throw new InvalidToolArgumentsError(
      'The arguments are not valid: the schema does not read them as it did when the call was made.',
    );
  }

  check(value: JsonValue): string[] {
    const result = this.schema['~standard'].validate(copyJson(value));
    if (result instanceof Promise) {
      result.catch(() => undefined);
      return ['the output schema is asynchronous and cannot check a value that a person or a probe gave'];
    }
    if (!result.issues) return [];
    return result.issues.length > 0 ? result.issues.map(problemOf) : ['the value is not valid'];
  }

  private async again(input: JsonObject): Promise<{ same: boolean; value?: unknown }> {
    const result = await this.schema['~standard'].validate(copyJson(input));
    if (result.issues) return { same: false };
    return { same: isSameJson(toJson(result.value), input), value: result.value };
  }
}

/** Whether a value is its own JSON form, `undefined` properties aside. */
function isPlainJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) {
    return value === null || typeof value !== 'number' ? typeof value !== 'bigint' : Number.isFinite(value);
  }
  if (Array.isArray(value)) return value.every(isPlainJson);
  const prototype = Object.getPrototypeOf(value) as unknown;
  return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlainJson);
}

function problemOf(issue: StandardIssue): string {
  const where = (issue.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  if (typeof issue.message === 'string' && issue.message.trim() !== '')
    return where === '' ? issue.message : `${where}: ${issue.message}`;
  // No part of the standard; Zod and Valibot name the rule so.
  const { code, type } = issue as { code?: unknown; type?: unknown };
  const rule = [code, type].find((name) => typeof name === 'string');
  return `${where || 'the value'} is not valid${rule === undefined ? '' : ` (${String(rule)})`}`;
}

/** The JSON Schema that a Standard Schema tells of itself; undefined when it tells none. */
export function describeStandardSchema(schema: StandardSchema, side: 'input' | 'output'): JsonObject | undefined {
  const candidates: (() => unknown)[] = [
    // Standard JSON Schema v1 (https://standardschema.dev/json-schema), Zod's own method, ArkType's own method.
    () => method(method(schema['~standard'], 'jsonSchema'), side)?.call(null, { target: 'draft-2020-12' }),
    () => method(schema, 'toJSONSchema')?.call(schema, { io: side }),
    () => method(schema, 'toJsonSchema')?.call(schema),
  ];
  for (const candidate of candidates) {
    try {
      const described = toJson(candidate());
      if (isJsonObject(described)) return withoutDialect(described);
    } catch {
      // It cannot describe this schema that way; there may be another.
    }
  }
  return undefined;
}

type Callable = ((...args: unknown[]) => unknown) & Record<string, unknown>;

function method(holder: unknown, name: string): Callable | undefined {
  const value = (holder as Record<string, unknown> | undefined)?.[name];
  return typeof value === 'function' || typeof value === 'object'
    ? ((value ?? undefined) as Callable | undefined)
    : undefined;
}
