/** The JSON Schema of a DTO class for the model: class-validator-jsonschema, nested classes inlined, recursion through `$defs`, unknown properties refused. */
import type { JsonObject } from '../../contracts/json.js';
import { type AnyClass, enumValues, type TransformerStorage } from './dto-metadata.js';
import { isJsonObject } from './json-copy.js';

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
