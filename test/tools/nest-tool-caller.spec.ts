import { jest } from '@jest/globals';
import { type INestApplicationContext, Injectable } from '@nestjs/common';
import { IsInt, IsString } from 'class-validator';
import { Transform } from 'class-transformer';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { InterruptedToolCall } from '../../lib/contracts/ports/tool-caller.port.js';
import { AgentTool, RecoverTool } from '../../lib/decorators/tool.decorators.js';
import type { ApprovalRule } from '../../lib/decorators/agent-tool.options.js';
import {
  APPROVAL_RULE_TIMEOUT_MS,
  askApprovalRule,
  didNotHappen,
  happened,
  outcomeUnknown,
} from '../../lib/tools/nest-tool-caller.js';
import { AsyncRunScope } from '../../lib/system/system-ports.js';
import { ManualClock } from '../support/manual-clock.js';
import { agentWith, bootHost, callTool, toolOf } from '../support/nest-host.js';
import { approvalOf } from '../../lib/engine/execution/validate-call.js';

class RefundDto {
  @IsString() @Transform(({ value }) => (value as string).trim()) orderId!: string;
  @IsInt() amountCents!: number;
}

@Injectable()
class PaymentTools {
  @AgentTool({
    name: 'refund',
    description: 'Refunds.',
    input: RefundDto,
    output: { type: 'object', required: ['id'] },
    recovery: 'probe',
    approval: (args) => args.amountCents > 100,
  })
  refund(refund: RefundDto) {
    return { id: `${refund.orderId}:${refund instanceof RefundDto}` };
  }

  @RecoverTool('refund')
  find(call: InterruptedToolCall) {
    if (call.arguments.orderId === 'mutates') call.arguments.amountCents = 0;
    return call.operationId === 'run-1/r1.m1.t0' ? happened({ id: 'x' }) : didNotHappen();
  }
}

let app: INestApplicationContext;
beforeAll(async () => {
  app = await bootHost({ providers: [PaymentTools, agentWith([PaymentTools])] });
});
afterAll(() => app.close());

describe('A tool as the engine calls it', () => {
  it('gives the method an instance of the DTO made from the input that was shown', async () => {
    const { caller } = toolOf(app, 'refund');
    const parsed = await caller.parse({ orderId: ' o1 ', amountCents: 5 });
    expect(parsed).toEqual({ ok: true, input: { orderId: 'o1', amountCents: 5 } });
    expect(await callTool(toolOf(app, 'refund'), { orderId: 'o1', amountCents: 5 })).toMatchObject({
      value: { id: 'o1:true' },
    });
  });

  it('MOD-4: arguments that break a transformation are the engine’s to record and to log', async () => {
    await expect(toolOf(app, 'refund').caller.parse({ orderId: 7, amountCents: 5 })).rejects.toThrow(TypeError);
  });

  it('B110: arguments with __proto__ anywhere are refused, and no prototype changes', async () => {
    const { caller } = toolOf(app, 'refund');
    const args = JSON.parse('{"orderId":"a","amountCents":1,"x":[{"__proto__":{"isAdmin":true}}]}') as JsonObject;
    expect(await caller.parse(args)).toEqual({ ok: false, problems: ['x.0.__proto__: this name is not allowed'] });
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('JRN-10: checks what a person or a probe gives as the result', () => {
    const { caller } = toolOf(app, 'refund');
    expect(caller.checkOutput({ id: 'x' })).toEqual([]);
    expect(caller.checkOutput({})).toEqual(["value must have required property 'id'"]);
  });

  it('JRN-10: refuses to check a result of more than 10000 values', () => {
    const { caller } = toolOf(app, 'refund');
    expect(caller.checkOutput({ id: Array.from({ length: 10_000 }, () => 1) })).toEqual([
      'has more than 10000 values to check',
    ]);
  });

  it('JRN-5: asks the @RecoverTool method, with arguments it cannot change', async () => {
    const { caller } = toolOf(app, 'refund');
    const probe = (orderId: string, operationId: string) =>
      caller.probe?.({
        runId: 'run-1',
        operationId,
        arguments: { orderId },
        attempt: 1,
        actor: null,
        signal: new AbortController().signal,
      });
    await expect(probe('o1', 'run-1/r1.m1.t0')).resolves.toEqual({ result: 'happened', output: { id: 'x' } });
    await expect(probe('o1', 'run-1/r1.m9.t0')).resolves.toEqual({ result: 'did-not-happen' });
    await expect(probe('mutates', 'run-1/r1.m1.t0')).rejects.toThrow(TypeError);
    expect(outcomeUnknown()).toEqual({ result: 'unknown' });
  });

  it('has no probe where there is no @RecoverTool', async () => {
    @Injectable()
    class Plain {
      @AgentTool({ name: 't', description: 'Does it.', input: {} })
      run() {
        return 1;
      }
    }
    const other = await bootHost({ providers: [Plain, agentWith(['t'])] });
    expect(toolOf(other, 't').caller.probe).toBeUndefined();
    await other.close();
  });
});

describe('The approval rule of a tool', () => {
  const call = { runId: 'run-1', callId: 'call_1', actor: { id: 'alice' } };
  const ask = (rule: boolean | ApprovalRule<JsonObject> | undefined, input: JsonObject = { a: [1] }) =>
    askApprovalRule(rule, input, call, new ManualClock());

  it('PPL-1a: a boolean or a function decides, also later', async () => {
    const { caller } = toolOf(app, 'refund');
    await expect(caller.approval({ orderId: 'a', amountCents: 101 }, call)).resolves.toEqual({});
    await expect(caller.approval({ orderId: 'a', amountCents: 100 }, call)).resolves.toBeNull();
    await expect(ask(undefined)).resolves.toBeNull();
    await expect(ask(false)).resolves.toBeNull();
    await expect(ask(true)).resolves.toEqual({});
    await expect(ask(() => Promise.resolve(false))).resolves.toBeNull();
  });

  it('PPL-1a: may say why, who and how long', async () => {
    const rule: ApprovalRule<JsonObject> = (_args, { actor }) => ({
      reason: `asked by ${actor?.id}`,
      risk: 'high',
      approverRole: 'boss',
      expiresIn: '2h',
    });
    await expect(ask(rule)).resolves.toEqual({
      reason: 'asked by alice',
      risk: 'high',
      approverRole: 'boss',
      expiresInMs: 7_200_000,
    });
    await expect(ask(() => ({ expiresIn: 'never' }))).resolves.toEqual({ expiresInMs: null });
  });

  it.each<[string, ApprovalRule<JsonObject>]>([
    [
      'throws',
      () => {
        throw new RangeError('secret');
      },
    ],
    ['rejects', () => Promise.reject(new RangeError('secret'))],
    ['gives a bad duration', () => ({ expiresIn: 'soon' as never })],
    ['answers a list', () => [] as never],
    ['answers a text', () => 'no' as never],
    ['answers what no requirement has', () => ({ approver: 'boss' }) as never],
    ['gives a reason that is no text', () => ({ reason: { secret: 1 } }) as never],
    [
      'answers what cannot be read',
      () =>
        Object.defineProperty({}, 'reason', {
          enumerable: true,
          get: () => {
            throw new Error('secret');
          },
        }),
    ],
    ['gives a life beyond the last date', () => ({ expiresIn: Number.MAX_SAFE_INTEGER })],
    [
      'changes its arguments',
      (args) => {
        (args.a as number[]).push(2);
        return false;
      },
    ],
  ])('PPL-1a: one that %s asks, as the engine reads it, and its words are not shown', async (_what, rule) => {
    const log = { debug: jest.fn(), info: jest.fn(), warn: jest.fn(), error: jest.fn() };
    const tool = { name: 't', caller: { approval: () => ask(rule) } } as never;
    const fields = { runId: 'r', operation: 'r1.m1.t0' };
    const verdict = await approvalOf(
      { clock: new ManualClock(), log, scope: new AsyncRunScope() },
      tool,
      {},
      call,
      fields,
    );
    expect(verdict).toEqual({ reason: expect.stringContaining('A person must decide because') });
    expect(JSON.stringify(verdict)).not.toContain('secret');
  });

  it('PPL-1a: one that does not answer in time asks', async () => {
    const clock = new ManualClock();
    const asked = askApprovalRule(() => new Promise<boolean>(() => undefined), {}, call, clock);
    await clock.advance(APPROVAL_RULE_TIMEOUT_MS);
    await expect(asked).resolves.toMatchObject({ reason: expect.stringContaining('did not answer in time') });
  });
});
