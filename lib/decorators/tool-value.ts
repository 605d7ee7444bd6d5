import type { JsonObject, JsonValue } from '../contracts/json.js';

/** JSON Schema as a plain object; `{}` means a tool without arguments. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A class with class-validator decorators, a Standard Schema, or a JSON Schema. */
export type ToolSchemaSource = StandardSchema | (new () => object) | JsonSchema;

/**
 * The value a schema describes: an instance of the class, the output of the Standard Schema, or what a JSON Schema literal says. What a JSON Schema says in
 * a way the compiler does not follow (`$ref`, `allOf`, conditions, a schema that is no literal) is `JsonValue`, and `JsonObject` at its root.
 */
export type ToolValueOf<S> = SchemaValue<S, JsonValue>;

/** What `@AgentTool` passes to its method. A schema that the compiler cannot follow leaves the parameter's type to the method. */
export type ToolInputOf<S> = SchemaValue<S, never>;

/** @typeParam Open stands for what a JSON Schema does not tell the compiler */
type SchemaValue<S, Open extends JsonValue> =
  S extends StandardSchema<unknown, infer Output>
    ? Output
    : S extends new () => infer Instance
      ? Instance
      : string extends keyof S
        ? Extract<Open, JsonObject>
        : keyof S extends never
          ? Record<string, never>
          : Extract<Described<S, Open>, object>;

/** The value of one JSON Schema literal. */
type Described<S, Open> = S extends { $ref: unknown } | { allOf: unknown } | { if: unknown } | { not: unknown }
  ? Open
  : S extends { const: infer Constant }
    ? Constant
    : S extends { enum: readonly (infer Member)[] }
      ? Member
      : S extends { anyOf: readonly (infer Branch)[] } | { oneOf: readonly (infer Branch)[] }
        ? S extends { type: unknown } | { properties: unknown }
          ? Open
          : Described<Branch, Open>
        : S extends { type: readonly (infer Type)[] }
          ? OfType<Type, S, Open>
          : S extends { type: infer Type }
            ? OfType<Type, S, Open>
            : S extends { properties: unknown }
              ? OfType<'object', S, Open>
              : Open;

type OfType<Type, S, Open> = Type extends 'string'
  ? Widened<Type, string, Open>
  : Type extends 'number' | 'integer'
    ? number
    : Type extends 'boolean'
      ? boolean
      : Type extends 'null'
        ? null
        : Type extends 'array'
          ? S extends { items: infer Item }
            ? Described<Item, Open>[]
            : Open[]
          : Type extends 'object'
            ? ObjectOf<S, Open>
            : Open;

/** `type: string` instead of `type: 'string'` says nothing. */
type Widened<Type, Value, Open> = string extends Type ? Open : Value;

type ObjectOf<S, Open> = S extends { properties: infer Properties }
  ? Merged<
      {
        -readonly [K in keyof Properties as IsPresent<K, Properties[K], S> extends true ? K : never]: Described<
          Properties[K],
          Open
        >;
      } & {
        -readonly [K in keyof Properties as IsPresent<K, Properties[K], S> extends true ? never : K]?: Described<
          Properties[K],
          Open
        >;
      }
    >
  : S extends { additionalProperties: infer Value extends object }
    ? Record<string, Described<Value, Open>>
    : [Open] extends [never]
      ? never
      : JsonObject;

/** Required, or filled in by its default. */
type IsPresent<K, Property, S> = S extends { required: readonly (infer Required)[] }
  ? K extends Required
    ? true
    : HasDefault<Property>
  : HasDefault<Property>;

type HasDefault<Property> = Property extends { default: unknown } ? true : false;

type Merged<T> = { [K in keyof T]: T[K] };

/** A schema of any library that follows Standard Schema v1 (https://standardschema.dev): Zod, Valibot, ArkType … */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The one property of the specification. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/**
 * What a Standard Schema says about a value: the value it makes of it, or what is wrong (https://standardschema.dev).
 */
export type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong with a value (https://standardschema.dev). */
export interface StandardIssue {
  /** In words. */
  readonly message: string;
  /** To the value that is wrong; absent = the whole. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
