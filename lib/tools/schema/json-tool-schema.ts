import type { Ajv as AjvClass, ErrorObject, Options, ValidateFunction } from 'ajv';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { copyJson, hasAtMost, type JsonObject, type JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';
import { type ToolSchema, withoutDialect } from './tool-schema.js';

const OPTIONS: Options = {
  strict: false,
  useDefaults: true,
  coerceTypes: false,
  validateFormats: false,
  logger: false,
};

/** Values up to which all problems of arguments are looked for; beyond it the first is told. */
const FEW_VALUES = 1_000;

/** JSON Schemas, by ajv: defaults are filled in, types are never coerced, formats are not judged. */
export class JsonToolSchema implements ToolSchema {
  readonly jsonSchema: JsonObject;
  private readonly validate: ValidateFunction;
  private validateAll: ValidateFunction | undefined;
  private readonly dialect: string;

  /** @throws Error when it is no valid schema */
  constructor(given: JsonObject) {
    this.dialect = typeof given.$schema === 'string' ? given.$schema : '';
    this.jsonSchema = withoutDialect(given);
    this.validate = this.compile(OPTIONS);
    if ('$async' in this.validate) throw new Error('"$async" makes a schema that only promises to have checked');
  }

  private compile(options: Options): ValidateFunction {
    const ajv: AjvClass = /draft-0[467]/.test(this.dialect) ? new Ajv(options) : new Ajv2020(options);
    // Without `$schema`, too: ajv would look for the meta schema under exactly that URL.
    return ajv.compile(copyJson(this.jsonSchema));
  }

  async parse(args: JsonObject): Promise<ParsedArguments> {
    const input = copyJson(args);
    return this.validate(input) ? { ok: true, input } : { ok: false, problems: this.problemsOf(args) };
  }

  async revive(input: JsonObject): Promise<JsonObject> {
    return copyJson(input);
  }

  check(value: JsonValue): string[] {
    return this.validate(copyJson(value)) ? [] : this.problemsOf(value);
  }

  /** Of a value that was refused just now. */
  private problemsOf(value: JsonValue): string[] {
    if (!hasAtMost(FEW_VALUES, value)) return textsOf(this.validate.errors);
    this.validateAll ??= this.compile({ ...OPTIONS, allErrors: true });
    this.validateAll(copyJson(value));
    return textsOf(this.validateAll.errors);
  }
}

function textsOf(errors: ErrorObject[] | null | undefined): string[] {
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
