import 'reflect-metadata';
import { INJECTABLE_WATERMARK } from '@nestjs/common/constants.js';
import { IsInt } from 'class-validator';
import { z } from 'zod';
import type { ApprovalResolver, InputGuardrail, RunObserver } from '../../lib/contracts/ports/host.port.js';
import { Agent, ObserveRuns, ResolveApprovals, ScreenInput } from '../../lib/decorators/provider.decorators.js';
import { AgentTool, RecoverTool } from '../../lib/decorators/tool.decorators.js';
import { MetadataAccessor } from '../../lib/decorators/metadata.accessor.js';
import { happened } from '../../lib/tools/nest-tool-caller.js';

const options = { name: 'support', version: '1', instructions: 'Help.' };

class RefundDto {
  @IsInt() amountCents!: number;
}

@Agent(options)
class SupportAgent {}

class Tools {
  @AgentTool({
    name: 'refund',
    description: 'Refunds.',
    input: RefundDto,
    // The class types the arguments of the rule.
    approval: (args) => args.amountCents.toFixed(2) !== '0.00',
  })
  refund() {
    return 1;
  }

  @AgentTool({
    name: 'lookup',
    description: 'Looks up.',
    input: z.object({ id: z.string() }),
    approval: async ({ id }, { actor }) => Promise.resolve({ reason: `${actor?.id ?? 'nobody'} ${id.trim()}` }),
  })
  lookup() {
    return 2;
  }

  @RecoverTool('refund')
  find() {
    return happened(3);
  }
}

const method = (name: keyof Tools, classRef: typeof Tools = Tools): unknown => classRef.prototype[name];

describe('The decorators', () => {
  it('@Agent keeps its options and makes the class injectable', () => {
    expect(MetadataAccessor.agent(SupportAgent)).toBe(options);
    expect(Reflect.getMetadata(INJECTABLE_WATERMARK, SupportAgent)).toBe(true);
    expect(MetadataAccessor.agent(class extends SupportAgent {})).toBe(options);
    expect(MetadataAccessor.agent(Tools)).toBeUndefined();
    expect(MetadataAccessor.agent(undefined)).toBeUndefined();
  });

  it('@AgentTool and @RecoverTool belong to the method they stand on', () => {
    class Sub extends Tools {
      override refund() {
        return 4;
      }
    }
    expect(MetadataAccessor.tool(method('refund'))?.name).toBe('refund');
    expect(MetadataAccessor.tool(method('refund', Sub))).toBeUndefined();
    expect(MetadataAccessor.tool(method('lookup', Sub))?.name).toBe('lookup');
    expect(MetadataAccessor.probedTool(method('find'))).toBe('refund');
    expect(MetadataAccessor.tool(method('find'))).toBeUndefined();
  });

  it('@ObserveRuns, @ScreenInput and @ResolveApprovals mark providers', () => {
    @ObserveRuns()
    @ScreenInput()
    @ResolveApprovals()
    class Watcher implements RunObserver, InputGuardrail, ApprovalResolver {
      onEvent() {}
      screen() {
        return null;
      }
      resolve() {
        return null;
      }
    }
    const { observesRuns, screensInput, resolvesApprovals } = MetadataAccessor;
    const marks = [observesRuns, screensInput, resolvesApprovals];
    expect(marks.map((isMarked) => isMarked(Watcher))).toEqual([true, true, true]);
    expect(marks.map((isMarked) => isMarked(Tools))).toEqual([false, false, false]);
    expect(Reflect.getMetadata(INJECTABLE_WATERMARK, Watcher)).toBe(true);
  });

  it('their metadata is found by every copy of the package in a process', () => {
    expect(Reflect.getMetadataKeys(SupportAgent)).toContain(Symbol.for('nestjs-agent-runs:agent'));
    expect(Reflect.getMetadataKeys(method('refund') as object)).toContain(Symbol.for('nestjs-agent-runs:agent-tool'));
  });
});
