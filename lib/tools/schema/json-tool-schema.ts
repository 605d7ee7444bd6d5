/** JSON Schemas, by ajv: defaults are filled in, types are never coerced, formats are not judged. */
import type { Ajv as AjvClass, ErrorObject, Options, ValidateFunction } from 'ajv';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';
import { copyJson, withoutDialect } from './json-copy.js';
import type { ToolSchema } from './tool-schema.js';

const OPTIONS: Options = {
  allErrors: true,
  strict: false,
  useDefaults: true,
  coerceTypes: false,
  validateFormats: false,
  logger: false,
};

export class JsonToolSchema implements ToolSchema {
  readonly jsonSchema: JsonObject;
  private readonly validate: ValidateFunction;

  /** @throws Error when it is no valid schema */
  constructor(given: JsonObject) {
    const dialect = typeof given.$schema === 'string' ? given.$schema : '';
    const ajv: AjvClass = /draft-0[467]/.test(dialect) ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS);
    this.jsonSchema = withoutDialect(given);
    // Without `$schema`, too: ajv would look for the meta schema under exactly that URL.
    this.validate = ajv.compile(copyJson(this.jsonSchema));
  }

  async parse(args: JsonObject): Promise<ParsedArguments> {
    const input = copyJson(args);
    return this.validate(input) ? { ok: true, input } : { ok: false, problems: problemsOf(this.validate.errors) };
  }

  async revive(input: JsonObject): Promise<JsonObject> {
    return copyJson(input);
  }

  check(value: JsonValue): string[] {
    return this.validate(copyJson(value)) ? [] : problemsOf(this.validate.errors);
  }
}

function problemsOf(errors: ErrorObject[] | null | undefined): string[] {
  return (errors ?? []).map(({ instancePath, message, params }) => {
    const path = instancePath.slice(1).replaceAll('/', '.') || 'value';
    const extra =
      'additionalProperty' in params
        ? `: ${String(params.additionalProperty)}`
        : 'allowedValues' in params
          ? `: ${JSON.stringify(params.allowedValues)}`
          : '';
    return `${path} ${message ?? 'is invalid'}${extra}`;
  });
}
