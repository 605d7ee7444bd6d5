/**
 * Classes with class-validator decorators. Plain arguments become an instance (class-transformer, no implicit conversion), the instance is validated, unknown
 * properties are refused, and its plain form is the input. The method gets an instance made from that input, so the transformations of the class must be
 * idempotent: one that is not is refused at the call, instead of executing something other than what was shown.
 */
import type { ValidationError, ValidatorOptions } from 'class-validator';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';
import { copyJson, isJsonObject, toJson } from './json-copy.js';
import type { ToolSchema } from './tool-schema.js';

type Dto = new () => object;

export interface DtoPackages {
  transformer: Pick<typeof import('class-transformer'), 'plainToInstance' | 'instanceToPlain'>;
  validator: Pick<typeof import('class-validator'), 'validate' | 'validateSync'>;
}

const VALIDATION: ValidatorOptions = {
  whitelist: true,
  forbidNonWhitelisted: true,
  forbidUnknownValues: true,
  validationError: { target: false, value: false },
};

export class DtoToolSchema implements ToolSchema {
  constructor(
    private readonly dto: Dto,
    readonly jsonSchema: JsonObject,
    private readonly packages: DtoPackages,
  ) {}

  async parse(args: JsonObject): Promise<ParsedArguments> {
    const instance = this.instance(args);
    const problems = problemsOf(await this.packages.validator.validate(instance, VALIDATION));
    if (problems.length > 0) return { ok: false, problems };
    const input = toJson(this.packages.transformer.instanceToPlain(instance)) as JsonObject;
    if (JSON.stringify(this.instance(input)) !== JSON.stringify(instance)) {
      return {
        ok: false,
        problems: [
          `${this.dto.name} transforms its own result into something else; its @Transform, @Expose and @Exclude must give the same when applied twice`,
        ],
      };
    }
    return { ok: true, input };
  }

  async revive(input: JsonObject): Promise<object> {
    return this.instance(input);
  }

  check(value: JsonValue): string[] {
    if (!isJsonObject(value)) return [`must be an object (${this.dto.name})`];
    return problemsOf(this.packages.validator.validateSync(this.instance(value), VALIDATION));
  }

  private instance(plain: JsonObject): object {
    return this.packages.transformer.plainToInstance(this.dto, copyJson(plain));
  }
}

function problemsOf(errors: readonly ValidationError[], path = ''): string[] {
  return errors.flatMap((error) => {
    const here = path === '' ? error.property : `${path}.${error.property}`;
    const own = Object.values(error.constraints ?? {}).map((text) => (path === '' ? text : `${here}: ${text}`));
    return [...own, ...problemsOf(error.children ?? [], here)];
  });
}
