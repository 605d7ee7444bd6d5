/** JSON Schema (draft 2020-12 or 07) for the engine: answers to questions are checked with it. */
import type { JsonObject, JsonValue } from '../json.js';

export interface SchemaChecker {
  /** What is wrong with a value, in words; empty when it fits. @throws Error when the schema itself is not valid */
  problems(schema: JsonObject, value: JsonValue): string[];
}
