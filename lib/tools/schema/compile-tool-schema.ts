import { isJsonObject, type JsonObject } from '../../contracts/json.js';
import type { JsonSchema, StandardSchema, ToolSchemaSource } from '../../decorators/tool-value.js';
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';
import {
  dtoJsonSchema,
  DtoToolSchema,
  type TransformerStorage,
  untypedNested,
  validationsOf,
} from './dto-tool-schema.js';
import { toJson, type ToolSchema, withoutDialect } from './tool-schema.js';
import { describeStandardSchema, StandardToolSchema } from './standard-tool-schema.js';

export interface SchemaRequest {
  source: ToolSchemaSource;
  side: 'input' | 'output';
  /** Shown to the model instead of the derived one. */
  override?: JsonSchema | undefined;
  /** For messages, e.g. `the input of tool refund_payment@1`. */
  what: string;
}

/**
 * From what a decorator was given to a {@link ToolSchema}.
 *
 * @throws InvalidConfigurationError when the source is none of the three kinds, or cannot be described to a model
 */
export async function compileToolSchema(request: SchemaRequest): Promise<ToolSchema> {
  const { source, side, override, what } = request;
  const shown = override === undefined ? undefined : toJson(override);
  if (shown !== undefined && !isJsonObject(shown)) throw invalid(`${what}: inputSchema is no JSON Schema object.`);
  const schema = await schemaFor(source, side, shown && withoutDialect(shown), what);
  return side === 'input' ? withObjectRoot(schema, what) : schema;
}

async function schemaFor(
  source: ToolSchemaSource,
  side: 'input' | 'output',
  shown: JsonObject | undefined,
  what: string,
): Promise<ToolSchema> {
  if (isStandardSchema(source)) {
    const described = shown ?? describeStandardSchema(source, side);
    if (described !== undefined) return new StandardToolSchema(source, described);
    if (side === 'output') return new StandardToolSchema(source, {});
    throw invalid(
      `${what} is a Standard Schema of "${source['~standard'].vendor}" that cannot describe itself as JSON Schema. Give the JSON Schema for the model as inputSchema.`,
    );
  }
  if (typeof source === 'function') return dtoSchema(source, shown, what);
  const plain = toJson(source);
  if (!isJsonObject(plain)) {
    throw invalid(
      `${what} is no schema. Give a class with class-validator decorators, a Standard Schema or a JSON Schema object.`,
    );
  }
  return jsonSchema(side === 'input' ? asObjectSchema(plain) : plain, shown, what);
}

async function jsonSchema(plain: JsonObject, shown: JsonObject | undefined, what: string): Promise<ToolSchema> {
  // Late, because ajv takes longer to load than all of this package.
  const { JsonToolSchema } = await import('./json-tool-schema.js');
  try {
    const schema = new JsonToolSchema(plain);
    return shown === undefined ? schema : shownAs(schema, shown);
  } catch (cause) {
    throw invalid(`${what} is no valid JSON Schema: ${(cause as Error).message}.`, cause);
  }
}

async function dtoSchema(dto: new () => object, shown: JsonObject | undefined, what: string): Promise<ToolSchema> {
  const usedFor = `${what} (${dto.name})`;
  const validator = await loadOptional('class-validator', usedFor, () => import('class-validator'));
  const transformer = await loadOptional('class-transformer', usedFor, () => import('class-transformer'));
  if (validationsOf(dto, validator).length === 0) {
    throw invalid(
      `${what}: the class ${dto.name} has no class-validator decorators that can be seen from here. Decorate its properties, install class-validator only once, or give {} for a tool without arguments.`,
    );
  }
  const storage = await transformerStorage();
  const untyped = storage ? untypedNested(dto, validator, storage) : [];
  if (untyped.length > 0)
    throw invalid(
      `${what}: @ValidateNested() on ${untyped.join(', ')} has no @Type(() => …) of class-transformer, so no value would ever pass. Add it.`,
    );
  if (shown !== undefined) return new DtoToolSchema(dto, shown, { validator, transformer });
  const jsonSchemas = await loadOptional(
    'class-validator-jsonschema',
    usedFor,
    () => import('class-validator-jsonschema'),
  );
  const derived = dtoJsonSchema(dto, {
    validator,
    jsonSchema: jsonSchemas,
    transformerStorage: storage,
  });
  return new DtoToolSchema(dto, derived, { validator, transformer });
}

/** class-transformer does not export it at its root; every library that reads it takes this path. */
async function transformerStorage(): Promise<TransformerStorage | undefined> {
  try {
    // eslint-disable-next-line @typescript-eslint/ban-ts-comment -- the file has no typings
    // @ts-ignore
    const storage = (await import('class-transformer/cjs/storage.js')) as {
      defaultMetadataStorage?: TransformerStorage;
    };
    return storage.defaultMetadataStorage;
  } catch {
    return undefined;
  }
}

function isStandardSchema(source: unknown): source is StandardSchema {
  return (
    (typeof source === 'object' || typeof source === 'function') &&
    source !== null &&
    typeof (source as Partial<StandardSchema>)['~standard']?.validate === 'function'
  );
}

/** `{}` stands for "no arguments"; `properties` alone for an object. */
function asObjectSchema(schema: JsonObject): JsonObject {
  if (Object.keys(schema).length === 0) return { type: 'object', properties: {}, additionalProperties: false };
  return schema.type === undefined && isJsonObject(schema.properties) ? { ...schema, type: 'object' } : schema;
}

/** Providers accept only objects as arguments. */
function withObjectRoot(schema: ToolSchema, what: string): ToolSchema {
  if (schema.jsonSchema.type === 'object') return schema;
  throw invalid(
    `${what} must describe an object at its root ("type": "object"); it says ${JSON.stringify(schema.jsonSchema.type)}.`,
  );
}

function shownAs(schema: ToolSchema, shown: JsonObject): ToolSchema {
  return {
    jsonSchema: shown,
    parse: (args) => schema.parse(args),
    revive: (input, given) => schema.revive(input, given),
    check: (value) => schema.check(value),
  };
}

function invalid(problem: string, cause?: unknown): InvalidConfigurationError {
  return new InvalidConfigurationError([problem], cause);
}

/**
 * Optional peers are loaded when the first tool needs them, never at import.
 *
 * @param load the import itself, so that bundlers and both module formats see a literal specifier
 * @throws InvalidConfigurationError naming what to install
 */
export async function loadOptional<T>(name: string, usedFor: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new InvalidConfigurationError(
      [`${usedFor} needs the package "${name}", which could not be loaded. Run: npm install ${name}`],
      cause,
    );
  }
}
