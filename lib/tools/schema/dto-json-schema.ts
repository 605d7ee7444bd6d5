/** The JSON Schema of a DTO class for the model: class-validator-jsonschema, nested classes inlined, recursion through `$defs`, unknown properties refused. */
import type { JsonObject } from '../../contracts/json.js';
import { isJsonObject } from './json-copy.js';

type AnyClass = abstract new (...args: never[]) => unknown;

export interface DtoSchemaPackages {
  jsonSchema: Pick<typeof import('class-validator-jsonschema'), 'targetConstructorToSchema'>;
  validator: Pick<typeof import('class-validator'), 'getMetadataStorage' | 'ValidationTypes'>;
  /** class-transformer's storage: who is behind `@Type`, `@Expose` and `@Exclude`. Undefined when this copy does not show it. */
  transformerStorage: { findTypeMetadata(target: unknown, property: string): TypeMetadata | undefined } | undefined;
}

interface TypeMetadata {
  typeFunction(): unknown;
}

interface PropertyMetadata {
  target: unknown;
  propertyName: string;
  each?: boolean;
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
