import 'reflect-metadata';
import { Expose, Transform, Type } from 'class-transformer';
import {
  IsArray,
  IsBoolean,
  IsDate,
  IsEnum,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
  Validate,
  ValidateNested,
  ValidatorConstraint,
  type ValidatorConstraintInterface,
} from 'class-validator';
import { z } from 'zod';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ToolSchemaSource } from '../../lib/decorators/tool-value.js';
import { compileToolSchema } from '../../lib/tools/schema/compile-tool-schema.js';

class LineDto {
  @IsString() sku!: string;
  @IsInt() @Min(1) quantity!: number;
}

class RefundDto {
  @IsString() @MaxLength(20) orderId!: string;
  @IsInt() @Min(1) @Max(1_000_000) amountCents!: number;
  @IsOptional() @IsIn(['damaged', 'late']) reason?: 'damaged' | 'late';
  @IsBoolean() notify = true;
  @IsOptional() @IsArray() @ValidateNested({ each: true }) @Type(() => LineDto) lines?: LineDto[];
  @IsOptional() @ValidateNested() @Type(() => LineDto) main?: LineDto;
}

class Plain {
  orderId!: string;
}

class DoublingDto {
  @IsInt() @Transform(({ value }) => (value as number) * 100) cents!: number;
}

class ShoutingDto {
  @IsString() @Transform(({ value }) => (value as string).toUpperCase()) text!: string;
}

class DatedDto {
  @IsDate() @Type(() => Date) at!: Date;
}

class RenamedDto {
  @IsString() @Expose({ name: 'order_id' }) orderId!: string;
}

class NodeDto {
  @IsString() name!: string;
  @IsOptional() @ValidateNested({ each: true }) @Type(() => NodeDto) children?: NodeDto[];
}

const input = (source: ToolSchemaSource, inputSchema?: JsonObject) =>
  compileToolSchema({ source, side: 'input', override: inputSchema, what: 'The input of tool t@1' });
const output = (source: ToolSchemaSource) =>
  compileToolSchema({ source, side: 'output', what: 'The output of tool t@1' });

describe('A class as the input of a tool', () => {
  it('JRN-10: is described to the model with its constraints, and closed to unknown properties', async () => {
    const { jsonSchema } = await input(RefundDto);
    const line = {
      type: 'object',
      properties: { sku: { type: 'string' }, quantity: { type: 'integer', minimum: 1 } },
      required: ['sku', 'quantity'],
      additionalProperties: false,
    };
    expect(jsonSchema).toEqual({
      type: 'object',
      properties: {
        orderId: { type: 'string', maxLength: 20 },
        amountCents: { type: 'integer', minimum: 1, maximum: 1_000_000 },
        reason: { type: 'string', enum: ['damaged', 'late'] },
        notify: { type: 'boolean' },
        lines: { type: 'array', items: line },
        main: line,
      },
      required: ['orderId', 'amountCents', 'notify'],
      additionalProperties: false,
    });
  });

  it('PPL-2: gives the plain input with its defaults, and the method an instance of exactly that', async () => {
    const schema = await input(RefundDto);
    const parsed = await schema.parse({ orderId: 'o1', amountCents: 5, lines: [{ sku: 'a', quantity: 2 }] });
    const expected = { orderId: 'o1', amountCents: 5, notify: true, lines: [{ sku: 'a', quantity: 2 }] };
    expect(parsed).toEqual({ ok: true, input: expected });
    const revived = (await schema.revive(expected)) as RefundDto;
    expect(revived).toBeInstanceOf(RefundDto);
    expect(revived.lines?.[0]).toBeInstanceOf(LineDto);
    expect(JSON.parse(JSON.stringify(revived))).toEqual(expected);
  });

  it('MOD-4: refuses unknown properties, wrong types and wrong nested values, naming each', async () => {
    const schema = await input(RefundDto);
    const parsed = await schema.parse({
      orderId: 7,
      amountCents: '5',
      dryRun: true,
      lines: [{ sku: 'a', quantity: 0 }],
    });
    expect(parsed.ok).toBe(false);
    const problems = parsed.ok ? '' : parsed.problems.join('\n');
    expect(problems).toContain('orderId must be a string');
    expect(problems).toContain('amountCents must be an integer number');
    expect(problems).toContain('property dryRun should not exist');
    expect(problems).toContain('lines.0.quantity');
  });

  it('PPL-2: refuses a transformation that would execute something other than what was shown', async () => {
    const schema = await input(DoublingDto);
    const parsed = await schema.parse({ cents: 3 });
    expect(parsed).toMatchObject({ ok: false, problems: [expect.stringContaining('DoublingDto')] });
  });

  it('applies transformations that are idempotent, dates and renamed properties included', async () => {
    await expect((await input(ShoutingDto)).parse({ text: 'a' })).resolves.toEqual({ ok: true, input: { text: 'A' } });
    const dated = await input(DatedDto);
    const parsed = await dated.parse({ at: '2026-01-02T03:04:05.000Z' });
    expect(parsed).toEqual({ ok: true, input: { at: '2026-01-02T03:04:05.000Z' } });
    expect(((await dated.revive({ at: '2026-01-02T03:04:05.000Z' })) as DatedDto).at).toBeInstanceOf(Date);
    const renamed = await input(RenamedDto);
    expect(renamed.jsonSchema).toMatchObject({ properties: { order_id: { type: 'string' } } });
    await expect(renamed.parse({ order_id: 'x' })).resolves.toEqual({ ok: true, input: { order_id: 'x' } });
    expect(await renamed.revive({ order_id: 'x' })).toEqual({ orderId: 'x' });
  });

  it('describes a class that contains itself', async () => {
    const { jsonSchema } = await input(NodeDto);
    expect(jsonSchema).toMatchObject({
      type: 'object',
      properties: { children: { items: { $ref: '#/$defs/NodeDto' } } },
      $defs: { NodeDto: { properties: { name: { type: 'string' } } } },
    });
  });

  it('CFG-1: without decorators is a boot error that says what to do', async () => {
    await expect(input(Plain)).rejects.toThrow(/Plain has no class-validator decorators.*give \{\}/s);
  });
});

enum Priority {
  Low,
  High,
}
enum Mixed {
  Off = 0,
  Auto = 'auto',
}

class EnumDto {
  @IsEnum(Priority) priority!: Priority;
  @IsOptional() @IsEnum(Priority, { each: true }) others?: Priority[];
  @IsOptional() @IsEnum(Mixed) mode?: Mixed;
  @IsOptional() @ValidateNested({ each: true }) @Type(() => EnumDto) children?: EnumDto[];
}

/** As compiled for ES2022: each declared property is an own one, whether it has a value or not. */
class FieldsDto {
  @IsString() id!: string;
  @IsOptional() @ValidateNested() @Type(() => FieldsDto) inner?: FieldsDto;

  constructor() {
    for (const key of ['id', 'note', 'inner'])
      Object.defineProperty(this, key, { value: undefined, writable: true, enumerable: true, configurable: true });
  }
}

@ValidatorConstraint({ name: 'isBusinessDay' })
class Silent implements ValidatorConstraintInterface {
  validate = (): boolean => false;
}

class SilentDto {
  @Validate(Silent) day!: string;
  @Max(5, { message: 'too much' }) amount!: number;
  @IsOptional() @ValidateNested() @Type(() => SilentDto) inner?: SilentDto;
}

class UntypedDto {
  @ValidateNested() line!: LineDto;
}
class OuterDto {
  @ValidateNested() @Type(() => UntypedDto) inner!: UntypedDto;
}
class MadeDto {
  @ValidateNested()
  @Transform(({ value }) => Object.assign(new LineDto(), value))
  line!: LineDto;
}

describe('What classes say and take', () => {
  const refused = async (dto: new () => object, args: JsonObject) => {
    const parsed = await (await input(dto, { type: 'object' })).parse(args);
    return parsed.ok ? null : parsed.problems;
  };

  // R229
  it('MOD-4: a numeric enum is offered as its numbers, and its names are refused', async () => {
    const schema = await input(EnumDto);
    expect(schema.jsonSchema['properties']).toMatchObject({
      priority: { enum: [0, 1], type: 'number' },
      others: { type: 'array', items: { enum: [0, 1], type: 'number' } },
      mode: { enum: [0, 'auto'] },
    });
    await expect(schema.parse({ priority: 1, others: [0, 1], mode: 'auto' })).resolves.toMatchObject({ ok: true });
    expect(await refused(EnumDto, { priority: 'High' })).toEqual(['priority must be one of [0,1] (isEnum)']);
    expect(await refused(EnumDto, { priority: 0, others: [1, 'Low'] })).toEqual([
      'others must be one of [0,1] (isEnum)',
    ]);
    expect(await refused(EnumDto, { priority: 0, mode: 'Off' })).toEqual(['mode must be one of [0,"auto"] (isEnum)']);
    expect(await refused(EnumDto, { priority: 0, children: [{ priority: 'Low' }] })).toEqual([
      'children.0.priority must be one of [0,1] (isEnum)',
    ]);
    expect((await output(EnumDto)).check({ priority: 'High' })).toHaveLength(1);
  });

  // R228
  it('MOD-4: a declared property that nobody gave is none', async () => {
    expect(await refused(FieldsDto, { id: 'a' })).toBeNull();
    expect(await refused(FieldsDto, { id: 'a', inner: { id: 'b' } })).toBeNull();
    expect(await refused(FieldsDto, { id: 'a', note: 'given' })).toEqual(['property note should not exist']);
    expect((await refused(FieldsDto, {}))?.join()).toContain('id must be a string');
  });

  it('MOD-4: problems name their field and their rule, also where a validator has no words', async () => {
    expect(await refused(SilentDto, { day: 'Sunday', amount: 9, inner: { day: 'Sunday', amount: 9 } })).toEqual([
      'day is not valid (isBusinessDay)',
      'amount: too much (max)',
      'inner.day is not valid (isBusinessDay)',
      'inner.amount: too much (max)',
    ]);
    const silent = z.object({ a: z.string().refine(() => false, { message: '' }) }).refine(() => true);
    const parsed = await (await input(silent)).parse({ a: 'x' });
    expect(parsed).toEqual({ ok: false, problems: ['a is not valid (custom)'] });
    const wordless = { '~standard': { version: 1, vendor: 'x', validate: () => ({ issues: [] }) } };
    expect((await output(wordless as never)).check(1)).toEqual(['the value is not valid']);
  });

  it('CFG-1: @ValidateNested() without @Type is a boot error that names the property', async () => {
    await expect(input(UntypedDto)).rejects.toThrow(/@ValidateNested\(\) on UntypedDto\.line has no @Type/);
    await expect(input(OuterDto, { type: 'object' })).rejects.toThrow(/on UntypedDto\.line has no @Type/);
    expect(await refused(MadeDto, { line: { sku: 'a', quantity: 1 } })).toBeNull();
  });
});

describe('A Standard Schema as the input of a tool', () => {
  const refund = z.object({ orderId: z.string(), cents: z.number().int().default(5) });

  it('describes itself, applies its defaults, and names what is wrong', async () => {
    const schema = await input(refund);
    expect(schema.jsonSchema).toMatchObject({
      type: 'object',
      properties: { orderId: { type: 'string' }, cents: { type: 'integer', default: 5 } },
      required: ['orderId'],
    });
    expect(schema.jsonSchema).not.toHaveProperty('$schema');
    await expect(schema.parse({ orderId: 'a' })).resolves.toEqual({ ok: true, input: { orderId: 'a', cents: 5 } });
    await expect(schema.parse({ cents: 1.5 })).resolves.toMatchObject({
      ok: false,
      problems: expect.arrayContaining([expect.stringMatching(/^orderId: /), expect.stringMatching(/^cents: /)]),
    });
  });

  it('gives the method what it transformed once, not twice', async () => {
    const schema = await input(z.object({ cents: z.number().transform((euros) => euros * 100) }));
    const parsed = await schema.parse({ cents: 3 });
    expect(parsed).toEqual({ ok: true, input: { cents: 300 } });
    expect(await schema.revive({ cents: 300 }, { cents: 3 })).toEqual({ cents: 300 });
    // Not what the schema makes of the arguments (any more): nothing is handed over instead.
    for (const given of [{ cents: 4 }, { cents: 'x' }])
      await expect(schema.revive({ cents: 300 }, given)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' });
  });

  it('gives the method a rich value again where its JSON leads back to it, and refuses it where it does not', async () => {
    const dated = await input(z.object({ at: z.coerce.date() }), { type: 'object' });
    const parsed = await dated.parse({ at: '2026-01-02T03:04:05.000Z' });
    expect(parsed).toEqual({ ok: true, input: { at: '2026-01-02T03:04:05.000Z' } });
    expect(((await dated.revive(parsed.ok ? parsed.input : {})) as { at: Date }).at).toBeInstanceOf(Date);
    const mapped = await input(z.object({ a: z.string().transform((a) => new Map([[a, 1]])) }), { type: 'object' });
    await expect(mapped.parse({ a: 'x' })).resolves.toMatchObject({
      ok: false,
      problems: [expect.stringContaining('JSON cannot carry')],
    });
  });

  it('CFG-1: that cannot describe itself needs inputSchema', async () => {
    const silent = {
      '~standard': { version: 1 as const, vendor: 'silent', validate: (value: unknown) => ({ value }) },
    };
    await expect(input(silent)).rejects.toThrow(/"silent".*inputSchema/s);
    await expect(input(silent, { type: 'object', properties: {} })).resolves.toMatchObject({
      jsonSchema: { type: 'object' },
    });
  });
});

describe('A JSON Schema as the input of a tool', () => {
  it('fills in defaults, coerces nothing, keeps the arguments it was given', async () => {
    const schema = await input({
      properties: { n: { type: 'integer' }, note: { type: 'string', default: 'none', format: 'email' } },
      required: ['n'],
      additionalProperties: false,
    });
    expect(schema.jsonSchema.type).toBe('object');
    const args = { n: 1 };
    await expect(schema.parse(args)).resolves.toEqual({ ok: true, input: { n: 1, note: 'none' } });
    expect(args).toEqual({ n: 1 });
    await expect(schema.parse({ n: '1', x: 2 })).resolves.toEqual({
      ok: false,
      problems: expect.arrayContaining([
        'n must be integer',
        expect.stringMatching(/must NOT have additional properties: x/),
      ]),
    });
  });

  it('B075: {} stands for a tool without arguments', async () => {
    const schema = await input({});
    expect(schema.jsonSchema).toEqual({ type: 'object', properties: {}, additionalProperties: false });
    await expect(schema.parse({})).resolves.toEqual({ ok: true, input: {} });
    await expect(schema.parse({ a: 1 })).resolves.toMatchObject({ ok: false });
  });

  it('understands draft 2020-12 by default and draft-07 by name', async () => {
    const tuple = { type: 'array', items: [{ type: 'string' }], additionalItems: false };
    await expect(input({ type: 'object', properties: { t: tuple } })).rejects.toThrow(/no valid JSON Schema/);
    const old = await input({
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { t: tuple },
    });
    await expect(old.parse({ t: ['a', 'b'] })).resolves.toMatchObject({ ok: false });
    const modern = await input({
      type: 'object',
      properties: { t: { type: 'array', prefixItems: [{ type: 'string' }], items: false } },
    });
    await expect(modern.parse({ t: ['a', 'b'] })).resolves.toMatchObject({ ok: false });
  });

  it('CFG-1: may not be asynchronous, because a promise would pass for a check', async () => {
    await expect(input({ $async: true, type: 'object' })).rejects.toThrow(/no valid JSON Schema: "\$async"/);
    await expect(input({ type: 'object', properties: { a: { $async: true, type: 'string' } } })).rejects.toThrow(
      /no valid JSON Schema/,
    );
    await expect(output({ $async: true })).rejects.toThrow(/no valid JSON Schema/);
  });

  it('MOD-4: names all problems of a few values, and the first one of many', async () => {
    const schema = await input({
      type: 'object',
      additionalProperties: false,
      properties: { list: { items: { type: 'string' } } },
    });
    const wrong = async (args: JsonObject) => {
      const parsed = await schema.parse(args);
      return parsed.ok ? [] : parsed.problems;
    };
    expect(await wrong({ list: [1, 'a', 2], more: 1 })).toHaveLength(3);
    expect(await wrong({ list: Array.from({ length: 5_000 }, () => 1) })).toEqual(['list.0 must be string']);
  });

  it('CFG-1: must be a valid schema with an object at its root', async () => {
    await expect(input({ type: 'string' })).rejects.toThrow(/must describe an object at its root/);
    await expect(input({ type: 'object', properties: { a: { type: 'strnig' } } })).rejects.toThrow(
      /no valid JSON Schema/,
    );
    await expect(input('refund' as never)).rejects.toThrow(/is no schema/);
  });
});

describe('An output schema', () => {
  it('JRN-10: checks a result that a person gave, of any kind', async () => {
    expect((await output({ type: 'string' })).check('a')).toEqual([]);
    expect((await output({ type: 'string' })).check(1)).toEqual(['value must be string']);
    expect((await output(LineDto)).check({ sku: 'a', quantity: 1 })).toEqual([]);
    expect((await output(LineDto)).check({ sku: 'a' }).join()).toContain('quantity');
    expect((await output(LineDto)).check(null)).toEqual(['must be an object (LineDto)']);
    expect((await output(z.number())).check('x')).toHaveLength(1);
    const slow = z.number().refine(async () => Promise.resolve(true));
    expect((await output(slow)).check(1).join()).toMatch(/asynchronous|async/i);
  });
});
