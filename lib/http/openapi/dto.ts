import type { Type } from '@nestjs/common';
import type { Field, FieldDoc, Fields, ObjectField } from '../../contracts/schema.js';

type Swagger = typeof import('@nestjs/swagger');
type ApiPropertyOptions = Parameters<Swagger['ApiProperty']>[0];

type Optional<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T] & string;

/** Every field of `T`, with a question mark behind the name of an optional one. */
export type DocOf<T> = { [K in Exclude<keyof T & string, Optional<T>>]: FieldDoc } & {
  [K in Optional<T> as `${K}?`]: FieldDoc;
};

const DTOS = new Map<Type<unknown>, Readonly<Record<string, FieldDoc>>>();

/**
 * A class that names a schema in the host's document. Its fields are kept until it is known whether the host has
 * `@nestjs/swagger` at all: an optional peer cannot be imported statically, and decorators cannot wait.
 * @param name `AgentRuns…Dto`, as no DTO of a host is called
 */
export function dto<T>(name: string, fields: DocOf<T>): Type<unknown> {
  const type = class {};
  Object.defineProperty(type, 'name', { value: name });
  DTOS.set(type, fields);
  return type;
}

/** The DTO of a body. */
export function bodyDto(name: string, schema: ObjectField<Fields>): Type<unknown> {
  const fields = Object.entries(schema.fields).map(([field, one]) => [one.required ? field : `${field}?`, docOf(one)]);
  return dto<Record<string, never>>(name, Object.fromEntries(fields) as Record<string, FieldDoc>);
}

/** A field in the words of OpenAPI, the fields of an object included. */
export function docOf(field: Field<unknown> & { readonly fields?: Fields }): FieldDoc {
  if (!field.fields) return field.doc;
  const inner = Object.entries(field.fields);
  const required = inner.filter(([, one]) => one.required).map(([name]) => name);
  return {
    ...field.doc,
    properties: Object.fromEntries(inner.map(([name, one]) => [name, docOf(one)])),
    required,
    selfRequired: field.required ?? false,
  };
}

/** Tells `@nestjs/swagger` about all DTOs. */
export function documentDtos(swagger: Swagger): void {
  for (const [type, fields] of DTOS) {
    for (const [key, doc] of Object.entries(fields)) {
      const isOptional = key.endsWith('?');
      const options = { required: !isOptional, ...doc } as ApiPropertyOptions;
      swagger.ApiProperty(options)(type.prototype as object, isOptional ? key.slice(0, -1) : key);
    }
  }
}
