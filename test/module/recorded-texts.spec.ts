// Whatever host code throws: of its text nothing is recorded, shown to the model or logged that has the form of a credential, and not more than a bound.
import 'reflect-metadata';
import { readdirSync, readFileSync } from 'node:fs';
import {
  BadRequestException,
  type CanActivate,
  ForbiddenException,
  type PipeTransform,
  UseGuards,
  UsePipes,
} from '@nestjs/common';
import type { Attention } from '../../lib/contracts/run-status.js';
import type { EntryOf, RecordedError } from '../../lib/contracts/journal-entry.js';
import type { ModelClient } from '../../lib/contracts/ports/model-client.port.js';
import type { ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import type { RecordedText } from '../../lib/contracts/text.js';
import type { RunError } from '../../lib/contracts/run.js';
import type { WorkerStatus } from '../../lib/contracts/run-view.js';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import { RunService } from '../../lib/engine/run-service.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { MAX_ERROR_MESSAGE } from '../../lib/engine/values/recorded-error.js';
import { ModelCallError } from '../../lib/errors/run.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agentWith, bootHost } from '../support/nest-host.js';

const SECRET = 'canary-7f3a91';
const TEXT = [
  `connect postgres://app:${SECRET}@db/x`,
  `DB_PASSWORD=${SECRET} AWS_SECRET_ACCESS_KEY=${SECRET}`,
  `Authorization: Token ${SECRET}`,
  'x'.repeat(200_000),
].join('\n');

class RefusingGuard implements CanActivate {
  canActivate(): boolean {
    throw new ForbiddenException(TEXT);
  }
}
class RefusingPipe implements PipeTransform {
  transform(): unknown {
    throw new BadRequestException([TEXT, TEXT]);
  }
}

const ANY = { input: { properties: {} } };
const withGetter = () => ({
  get value(): string {
    throw new Error(TEXT);
  },
});

class Tools {
  @AgentTool({ name: 'throws', description: 'Throws.', ...ANY })
  throws() {
    throw new Error(TEXT);
  }

  @AgentTool({ name: 'guarded', description: 'Is guarded.', ...ANY })
  @UseGuards(RefusingGuard)
  guarded() {}

  @AgentTool({ name: 'piped', description: 'Has a pipe.', ...ANY })
  @UsePipes(RefusingPipe)
  piped() {}

  @AgentTool({
    name: 'validated',
    description: 'Has a validator of its own.',
    input: {
      '~standard': {
        version: 1,
        vendor: 'host',
        validate: () => ({ issues: [{ message: TEXT }] }),
      },
    } as never,
    inputSchema: { type: 'object' },
  })
  validated() {}

  @AgentTool({ name: 'getter', description: 'Returns what cannot be read.', recovery: 'safe', ...ANY })
  getter() {
    return withGetter();
  }

  @AgentTool({
    name: 'unread',
    description: 'Returns what cannot be read, after an effect.',
    recovery: 'manual',
    ...ANY,
  })
  unread() {
    return withGetter();
  }

  @AgentTool({ name: 'step', description: 'Has a step that throws.', recovery: 'safe', ...ANY })
  async step(_input: unknown, context: ToolContext) {
    await context.step('s', () => {
      throw new Error(TEXT);
    });
  }
}

const failing = (error: unknown): ModelClient => ({ name: 'host', generate: () => Promise.reject(error) });
const calling = (name: string) => scriptedModel([{ calls: [{ name }] }, { text: 'done' }], { place: 'transcript' });

describe.each<[place: string, model: ModelClient | string]>([
  ['a tool', 'throws'],
  ['a guard', 'guarded'],
  ['a pipe', 'piped'],
  ['a validator', 'validated'],
  ['a getter of a result', 'getter'],
  ['a getter of a result that nobody can repeat', 'unread'],
  ['a step', 'step'],
  ['a model client', failing(new Error(TEXT))],
  ["a host's ModelCallError", failing(new ModelCallError(TEXT, { retryable: false }))],
  ["a host's passing ModelCallError", failing(new ModelCallError(TEXT, { retryable: true }))],
])('what %s says', (_place, model) => {
  it('is recorded without credentials, and bounded', async () => {
    const client = typeof model === 'string' ? calling(model) : model;
    const app = await bootHost({
      providers: [Tools, agentWith([Tools], { modelRetry: { maxAttempts: 1 } })],
      runs: { trigger: false, models: { default: client } },
    });
    const runs = app.get(RunService);
    const run = await runs.startAndWait({ agent: 'support', prompt: 'go' });
    const { events } = await runs.events(run.id);
    const recorded = [run, events, await runs.messages(run.id), app.get(RunWorker).status()];
    await app.close();
    expect(JSON.stringify(recorded)).not.toContain(SECRET);
    expect(JSON.stringify(recorded)).toContain('[redacted]');
    for (const event of events) expect(JSON.stringify(event).length).toBeLessThan(1_500 + 2 * MAX_ERROR_MESSAGE);
  });
});

describe('a new place cannot get past the mask', () => {
  it('because the compiler wants a RecordedText wherever a foreign text is recorded', () => {
    type Places = [
      RecordedError['message'],
      RunError['message'],
      Attention['detail'],
      NonNullable<EntryOf<'tool.denied'>['reason']>,
      NonNullable<EntryOf<'tool.uncertain'>['problem']>,
      NonNullable<WorkerStatus['reason']>,
    ];
    const areRecorded: Places extends RecordedText[] ? true : never = true;
    // @ts-expect-error -- a text is not recorded as it is
    const message: RecordedError['message'] = new Error('as it is').message;
    expect([areRecorded, message]).toEqual([true, 'as it is']);
  });

  it('and only one function makes one', () => {
    const makers = readdirSync('lib', { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.startsWith('testing'))
      .filter((file) => readFileSync(`lib/${file}`, 'utf8').includes('as RecordedText'));
    expect(makers).toEqual(['engine/values/recorded-error.ts']);
  });
});
