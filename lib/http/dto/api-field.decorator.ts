/**
 * What `@ApiProperty` says, kept until it is known whether the host has `@nestjs/swagger` at all: an optional peer cannot be imported by a static import,
 * and decorators cannot wait for a dynamic one.
 */
export interface ApiFieldOptions {
  type?: unknown;
  description?: string;
  required?: boolean;
  nullable?: boolean;
  isArray?: boolean;
  enum?: readonly string[];
  enumName?: string;
  example?: unknown;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  additionalProperties?: boolean | object;
  oneOf?: object[];
  items?: object;
}

const FIELDS = new Map<object, Map<string, ApiFieldOptions>>();

/** A field of a schema. The class names the schema in the host's document: `AgentRuns…`, which none of the host's own DTOs is called. */
export function ApiField(options: ApiFieldOptions): PropertyDecorator {
  return (prototype, name) => {
    const fields = FIELDS.get(prototype) ?? new Map<string, ApiFieldOptions>();
    FIELDS.set(prototype, fields.set(String(name), options));
  };
}

/** An optional field. */
export function ApiOptionalField(options: ApiFieldOptions): PropertyDecorator {
  return ApiField({ ...options, required: false });
}

/** All fields of all DTO classes that were loaded, by prototype, in order. */
export function apiFields(): ReadonlyMap<object, ReadonlyMap<string, ApiFieldOptions>> {
  return FIELDS;
}
