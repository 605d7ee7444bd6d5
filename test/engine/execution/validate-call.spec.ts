import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../../lib/contracts/json.js';
import { parseCall } from '../../../lib/engine/execution/validate-call.js';
import { AsyncRunScope } from '../../../lib/system/system-ports.js';
import { tool, type ToolOptions } from '../../support/engine-harness.js';
import { ManualClock } from '../../support/manual-clock.js';

const ignore = () => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

const parsed = (args: JsonObject, parse: NonNullable<ToolOptions['parse']>) =>
  parseCall(
    { clock: new ManualClock(), log: SILENT, scope: new AsyncRunScope() },
    tool('pay', () => null, { parse }),
    args,
    { runId: 'r', operation: 'r1.m1.t0' },
  );

describe('The arguments of a call', () => {
  it('MOD-4: do not reach the validator when it could not be asked about them within bounds', async () => {
    let asked = 0;
    const counting = (args: JsonObject) => {
      asked++;
      return { ok: true as const, input: args };
    };
    const many = { list: Array.from({ length: 20_000 }, () => 1) };
    expect(await parsed(many, counting)).toMatchObject({ ok: false, problems: [expect.stringContaining('10000')] });
    expect(await parsed({ account: 2 ** 53 }, counting)).toMatchObject({ ok: false });
    expect(asked).toBe(0);
    expect(await parsed({ account: 2 ** 53 - 1 }, counting)).toMatchObject({ ok: true });
    expect(asked).toBe(1);
  });

  it('MOD-4: given as text, are refused where the schema rounds them', async () => {
    const coercing = (args: JsonObject) => ({ ok: true as const, input: { account: Number(args['account']) } });
    expect(await parsed({ account: '12' }, coercing)).toEqual({ ok: true, input: { account: 12 } });
    expect(await parsed({ account: '76561198016705746' }, coercing)).toEqual({
      ok: false,
      problems: [expect.stringMatching(/^as the schema reads it, the number at \$\.account would be rounded/)],
    });
  });

  it('MOD-4: are refused with at most 20 problems, and never without one', async () => {
    const problems = (count: number) => Array.from({ length: count }, (_, n) => `problem ${n}`);
    const refusing = (count: number) => parsed({}, () => ({ ok: false, problems: problems(count) }));
    expect(await refusing(2)).toEqual({ ok: false, problems: problems(2) });
    expect(await refusing(100_000)).toEqual({ ok: false, problems: [...problems(20), 'and 99980 more'] });
    expect(await refusing(0)).toEqual({ ok: false, problems: ['they do not fit the schema'] });
  });
});
