import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata.js';

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
