import type { JsonValue } from './json.js';

/**
 * What a value is once it has been through JSON, as results of tools and steps are: a `Date` is text, a missing property stays missing, `undefined` alone is
 * `null`. What has no JSON form (functions, maps, sets) is `never`, as a property it is left out.
 */
export type JsonOf<T> = unknown extends T
  ? JsonValue
  : T extends JsonValue
    ? T
    : T extends undefined | void
      ? null
      : T extends bigint
        ? string
        : T extends Error
          ? { name: string; message: string }
          : T extends { toJSON(...args: never[]): infer Form }
            ? JsonOf<Form>
            : T extends Formless
              ? never
              : T extends readonly unknown[]
                ? { -readonly [I in keyof T]: JsonOf<T[I]> }
                : JsonPropertiesOf<T>;

type Formless =
  | symbol
  | RegExp
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | PromiseLike<unknown>
  | ((...args: never[]) => unknown);

type JsonPropertiesOf<T> = {
  [K in keyof T as KeyIf<T, K, never>]: JsonOf<T[K]>;
} & {
  [K in keyof T as KeyIf<T, K, undefined>]?: JsonOf<Exclude<T[K], undefined>>;
} extends infer Properties
  ? { [K in keyof Properties]: Properties[K] }
  : never;

/** The key of a property with a JSON form, if it may be missing (`undefined`) or not (`never`). */
type KeyIf<T, K extends keyof T, Missing> = K extends symbol
  ? never
  : [Exclude<T[K], undefined>] extends [Formless]
    ? never
    : [Extract<T[K], undefined>] extends [Missing]
      ? [Missing] extends [Extract<T[K], undefined>]
        ? K
        : never
      : never;
