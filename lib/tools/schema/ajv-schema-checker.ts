/** JSON Schemas that come at run time, such as those of questions (port SchemaChecker). Compiled ones are kept, the latest of them. */
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { SchemaChecker } from '../../contracts/ports/schema-checker.port.js';
import { JsonToolSchema } from './json-tool-schema.js';

const KEPT = 100;

export class AjvSchemaChecker implements SchemaChecker {
  private readonly compiled = new Map<string, JsonToolSchema>();

  /** @throws Error when the schema itself is not valid */
  problems(schema: JsonObject, value: JsonValue): string[] {
    const text = JSON.stringify(schema);
    const known = this.compiled.get(text) ?? new JsonToolSchema(schema);
    this.compiled.delete(text);
    this.compiled.set(text, known);
    if (this.compiled.size > KEPT) this.compiled.delete(this.compiled.keys().next().value as string);
    return known.check(value);
  }
}
