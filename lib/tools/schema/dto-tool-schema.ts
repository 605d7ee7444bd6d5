import type { ValidationError, ValidatorOptions } from 'class-validator';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata.js';
import { copyJson, isJsonObject, type JsonObject, type JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';
import { toJson, type ToolSchema } from './tool-schema.js';

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

/**
 * Classes with class-validator decorators. Plain arguments become an instance (class-transformer, no implicit
 * conversion), the instance is validated, unknown properties are refused, and its plain form is the input. The method
 * gets an instance made from that input, so the transformations of the class must be idempotent: one that is not is
 * refused at the call, instead of executing something other than what was shown.
 */
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

  revive(input: JsonObject): object {
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

export interface DtoSchemaPackages {
  jsonSchema: Pick<typeof import('class-validator-jsonschema'), 'targetConstructorToSchema'>;
  validator: Pick<typeof import('class-validator'), 'getMetadataStorage' | 'ValidationTypes' | 'IS_ENUM'>;
  /** Undefined when this copy of class-transformer does not show it. */
  transformerStorage: TransformerStorage | undefined;
}

interface PropertyMetadata {
  target: unknown;
  propertyName: string;
  each?: boolean;
  constraints?: unknown[];
}

/**
 * The JSON Schema of a DTO class for the model: class-validator-jsonschema, nested classes inlined, recursion through
 * `$defs`, unknown properties refused.
 */
export function dtoJsonSchema(dto: AnyClass, packages: DtoSchemaPackages): JsonObject {
  const path: AnyClass[] = [];
  const recursive = new Map<AnyClass, string>();
  const definitions: JsonObject = {};

  const schemaOf = (type: AnyClass): JsonObject => {
    if (path.includes(type)) {
      const name = recursive.get(type) ?? `${type.name}${recursive.size === 0 ? '' : recursive.size + 1}`;
      recursive.set(type, name);
      return { $ref: `#/$defs/${name}` };
    }
    path.push(type);
    const schema = closed(
      packages.jsonSchema.targetConstructorToSchema(type, {
        classValidatorMetadataStorage: packages.validator.getMetadataStorage(),
        ...(packages.transformerStorage === undefined
          ? {}
          : { classTransformerMetadataStorage: packages.transformerStorage as never }),
        additionalConverters: {
          [packages.validator.ValidationTypes.NESTED_VALIDATION]: (meta: PropertyMetadata) => nested(meta),
          [packages.validator.IS_ENUM]: ({ constraints }: PropertyMetadata) => enumSchema(constraints?.[0]),
        },
      }) as unknown as JsonObject,
    );
    path.pop();
    const name = recursive.get(type);
    if (name === undefined) return schema;
    definitions[name] = schema;
    return path.length === 0 ? schema : { $ref: `#/$defs/${name}` };
  };

  const nested = ({ target, propertyName, each }: PropertyMetadata): JsonObject => {
    const declared = Reflect.getMetadata(
      'design:type',
      (target as AnyClass).prototype as object,
      propertyName,
    ) as unknown;
    const type = packages.transformerStorage?.findTypeMetadata(target, propertyName)?.typeFunction() ?? declared;
    if (typeof type !== 'function' || type === Object || type === Array) return {};
    const schema = schemaOf(type as AnyClass);
    return declared === Array && each !== true ? { type: 'array', items: schema } : schema;
  };

  const root = schemaOf(dto);
  return Object.keys(definitions).length === 0 ? root : { ...root, $defs: definitions };
}

function closed(schema: JsonObject): JsonObject {
  return isJsonObject(schema.properties) ? { ...schema, additionalProperties: false } : schema;
}

/** Of a numeric enum its numbers only: its names are no values of it. */
function enumSchema(entity: unknown): JsonObject {
  const values = enumValues((entity ?? {}) as Record<string, unknown>) as (string | number)[];
  const types = [...new Set(values.map((value) => typeof value))];
  return { enum: values, ...(types.length === 1 && { type: types[0] as string }) };
}

export type AnyClass = abstract new (...args: never[]) => unknown;

/** class-transformer's storage: who is behind `@Type` and `@Transform`. */
export interface TransformerStorage {
  findTypeMetadata(target: unknown, property: string): { typeFunction(): unknown } | undefined;
  findTransformMetadatas(target: unknown, property: string, type: number): unknown[];
}

type Validator = Pick<typeof import('class-validator'), 'getMetadataStorage' | 'ValidationTypes'>;

export function validationsOf(dto: unknown, validator: Pick<Validator, 'getMetadataStorage'>): ValidationMetadata[] {
  return validator.getMetadataStorage().getTargetValidationMetadatas(dto as AnyClass, '', true, false);
}

/** class-transformer's `TransformationType.PLAIN_TO_CLASS`. */
const PLAIN_TO_CLASS = 0;

/** Properties whose nested values stay plain objects, because nothing says of which class they are: class-validator refuses each of them. */
export function untypedNested(dto: AnyClass, validator: Validator, storage: TransformerStorage): string[] {
  const seen = new Set<unknown>();
  const visit = (type: unknown): string[] => {
    if (typeof type !== 'function' || seen.has(type)) return [];
    seen.add(type);
    return validationsOf(type, validator)
      .filter((meta) => meta.type === validator.ValidationTypes.NESTED_VALIDATION)
      .flatMap(({ target, propertyName }) => {
        const typed = storage.findTypeMetadata(target, propertyName);
        if (typed) return visit(typed.typeFunction());
        const isMade = storage.findTransformMetadatas(target, propertyName, PLAIN_TO_CLASS).length > 0;
        return isMade ? [] : [`${type.name}.${propertyName}`];
      });
  };
  return [...new Set(visit(dto))];
}

/** The values of a TypeScript enum, without the names that a numeric one holds as well. */
export function enumValues(entity: Readonly<Record<string, unknown>>): unknown[] {
  const isReverse = (key: string): boolean => {
    const name = entity[key];
    return typeof name === 'string' && typeof entity[name] === 'number' && String(entity[name]) === key;
  };
  return Object.keys(entity)
    .filter((key) => !isReverse(key))
    .map((key) => entity[key]);
}
