/**
 * Classes with class-validator decorators. Plain arguments become an instance (class-transformer, no implicit conversion), the instance is validated, unknown
 * properties are refused, and its plain form is the input. The method gets an instance made from that input, so the transformations of the class must be
 * idempotent: one that is not is refused at the call, instead of executing something other than what was shown.
 */
import type { ValidationError, ValidatorOptions } from 'class-validator';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';
import { enumValues, validationsOf } from './dto-metadata.js';
import { copyJson, isJsonObject, toJson } from './json-copy.js';
import type { ToolSchema } from './tool-schema.js';

type Dto = new () => object;

export interface DtoPackages {
  transformer: Pick<typeof import('class-transformer'), 'plainToInstance' | 'instanceToPlain'>;
  validator: Pick<typeof import('class-validator'), 'validate' | 'validateSync' | 'getMetadataStorage' | 'IS_ENUM'>;
}

const VALIDATION: ValidatorOptions = {
  whitelist: true,
  forbidNonWhitelisted: true,
  forbidUnknownValues: true,
  validationError: { target: false, value: false },
};

export class DtoToolSchema implements ToolSchema {
  private readonly enums = new Map<unknown, ReadonlyMap<string, unknown[]>>();

  constructor(
    private readonly dto: Dto,
    readonly jsonSchema: JsonObject,
    private readonly packages: DtoPackages,
  ) {}

  async parse(args: JsonObject): Promise<ParsedArguments> {
    const instance = this.instance(args);
    const errors = await this.packages.validator.validate(instance, VALIDATION);
    const problems = [...problemsOf(errors), ...this.namesForNumbers(instance)];
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
    const instance = this.instance(value);
    return [
      ...problemsOf(this.packages.validator.validateSync(instance, VALIDATION)),
      ...this.namesForNumbers(instance),
    ];
  }

  private instance(plain: JsonObject): object {
    return withoutUndefined(this.packages.transformer.plainToInstance(this.dto, copyJson(plain)));
  }

  /** class-validator takes the names of a numeric enum for its values; the method would be given a text where it expects a number. */
  private namesForNumbers(value: unknown, path = ''): string[] {
    if (typeof value !== 'object' || value === null) return [];
    const enums = this.enumsOf(value.constructor);
    return Object.entries(value).flatMap(([key, item]: [string, unknown]) => {
      const here = path === '' ? key : `${path}.${key}`;
      const values = enums.get(key);
      const isName = (one: unknown): boolean => typeof one === 'string' && values?.includes(one) === false;
      if (values && [item].flat().some(isName)) return [`${here} must be one of ${JSON.stringify(values)} (isEnum)`];
      return this.namesForNumbers(item, here);
    });
  }

  private enumsOf(type: unknown): ReadonlyMap<string, unknown[]> {
    const known = this.enums.get(type);
    if (known) return known;
    const { validator } = this.packages;
    const enums = new Map(
      (typeof type === 'function' ? validationsOf(type, validator) : [])
        .filter(({ name }) => name === validator.IS_ENUM)
        .map(({ propertyName, constraints }) => [propertyName, enumValues(constraints[0] as Record<string, unknown>)]),
    );
    this.enums.set(type, enums);
    return enums;
  }
}

/** Class fields of ES2022 are own properties, also those that nobody gave: one without a value is none. */
function withoutUndefined<T extends object>(value: T): T {
  if (!Array.isArray(value))
    for (const key of Object.keys(value))
      if ((value as Record<string, unknown>)[key] === undefined) Reflect.deleteProperty(value, key);
  for (const item of Object.values(value) as unknown[])
    if (typeof item === 'object' && item !== null) withoutUndefined(item);
  return value;
}

/** One at least for each error, with its field and its rule. */
function problemsOf(errors: readonly ValidationError[], path = ''): string[] {
  return errors.flatMap(({ property, constraints, children }) => {
    const here = path === '' ? property : `${path}.${property}`;
    const own = Object.entries(constraints ?? {}).map(([rule, text]: [string, unknown]) => {
      if (typeof text !== 'string' || text.trim() === '') return `${here} is not valid (${rule})`;
      const named = path === '' && text.includes(property) ? text : `${here}: ${text}`;
      return text.includes(property) ? named : `${named} (${rule})`;
    });
    const all = [...own, ...problemsOf(children ?? [], here)];
    return all.length > 0 ? all : [`${here} is not valid`];
  });
}
