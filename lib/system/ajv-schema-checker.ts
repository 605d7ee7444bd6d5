/** JSON Schema by ajv (port SchemaChecker); compiled once per schema text. */
import { Ajv, type ValidateFunction } from 'ajv';
import type { JsonObject, JsonValue } from '../contracts/json.js';
import type { SchemaChecker } from '../contracts/ports/schema-checker.port.js';

/** Schemas come from questions, so their number has no bound of its own. */
const MAX_COMPILED = 500;

export class AjvSchemaChecker implements SchemaChecker {
  private readonly ajv = new Ajv({ allErrors: true, strict: false, addUsedSchema: false });
  private readonly compiled = new Map<string, ValidateFunction>();

  problems(schema: JsonObject, value: JsonValue): string[] {
    const validate = this.validatorOf(schema);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message }) => `${instancePath === '' ? '' : `${instancePath} `}${message ?? 'does not fit'}`,
    );
  }

  private validatorOf(schema: JsonObject): ValidateFunction {
    const text = JSON.stringify(schema);
    const known = this.compiled.get(text);
    if (known) return known;
    if (this.compiled.size >= MAX_COMPILED) this.compiled.clear();
    const validate = this.ajv.compile(schema);
    this.compiled.set(text, validate);
    return validate;
  }
}
