// CFG-7: nothing of the module needs an HTTP adapter.
import 'reflect-metadata';
import { Controller, Inject, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type CustomTransportStrategy, MessagePattern, Payload, Server } from '@nestjs/microservices';
import { describe, expect, it } from '@jest/globals';
import { isObservable, lastValueFrom } from 'rxjs';
import { Agent } from '../../lib/decorators/provider.decorators.js';
import { RunService } from '../../lib/engine/run-service.js';
import { RunWorker } from '../../lib/engine/run-worker.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { AgentRunsModule } from '../../lib/module/agent-runs.module.js';

/** A transport within the process. */
class InMemoryTransport extends Server implements CustomTransportStrategy {
  isClosed = false;

  listen(callback: () => void): void {
    callback();
  }

  close(): void {
    this.isClosed = true;
  }

  on(): void {}

  unwrap<T>(): T {
    return undefined as T;
  }

  async deliver(pattern: string, data: unknown): Promise<unknown> {
    const answer: unknown = await this.messageHandlers.get(pattern)?.(data);
    return isObservable(answer) ? lastValueFrom(answer) : answer;
  }
}

@Controller()
class Messages {
  constructor(@Inject(RunService) private readonly runs: RunService) {}

  @MessagePattern('ask')
  async ask(@Payload() prompt: string): Promise<unknown> {
    return (await this.runs.startAndWait({ agent: 'support', prompt })).output;
  }
}

@Agent({ name: 'support', version: '1', instructions: 'Help.', tools: [] })
class Support {}

function hostOf(): Type {
  @Module({
    imports: [
      AgentRunsModule.forRoot({ trigger: 'interval', models: { default: scriptedModel([{ text: 'hello' }]) } }),
    ],
    controllers: [Messages],
    providers: [Support],
  })
  class Host {}
  return Host;
}

const quiet = { logger: false as const, abortOnError: false };

describe('the module', () => {
  it('CFG-7: works in an application context', async () => {
    const app = await NestFactory.createApplicationContext(hostOf(), quiet);
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'hi' });
    expect(run.output).toBe('hello');
    await app.close();
    expect(app.get(RunWorker).status().activeRuns).toBe(0);
  });

  it('CFG-7: works in a microservice, and stops with it', async () => {
    const transport = new InMemoryTransport();
    const app = await NestFactory.createMicroservice(hostOf(), { ...quiet, strategy: transport });
    await app.listen();
    expect(await transport.deliver('ask', 'hi')).toBe('hello');
    await app.close();
    expect(transport.isClosed).toBe(true);
  });

  it('CFG-7: works in a hybrid application, over HTTP and messages alike', async () => {
    const transport = new InMemoryTransport();
    const app = await NestFactory.create(hostOf(), quiet);
    app.connectMicroservice({ strategy: transport });
    await app.startAllMicroservices();
    await app.listen(0);
    expect(await transport.deliver('ask', 'hi')).toBe('hello');
    expect(app.get(RunWorker).status().state).toBe('ready');
    await app.close();
    expect(app.get(RunWorker).status().state).toBe('draining');
  });
});
