/** A host application with the routes, the real engine and a store in memory. */
import {
  type CanActivate,
  type DynamicModule,
  type ExecutionContext,
  Global,
  type INestApplication,
  Injectable,
  Module,
  type NestApplicationOptions,
  type Type,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import request from 'supertest';
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import type { InputGuardrail } from '../../lib/contracts/ports/host.port.js';
import type { ModelClient, ModelReply, ModelRequest } from '../../lib/contracts/ports/model-client.port.js';
import { AGENT_RUNS_STORE } from '../../lib/decorators/inject-run-store.decorator.js';
import { RunService } from '../../lib/engine/run-service.js';
import { AgentRunsHttpModule, type AgentRunsHttpOptions, type HttpRequestLike } from '../../lib/http.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { SystemClock } from '../../lib/system/system-ports.js';
import { agent, engineOver, tool } from '../support/engine-harness.js';

export type AdapterName = 'express' | 'fastify';
export const ADAPTERS: AdapterName[] = ['express', 'fastify'];

/** Says who asks: `x-user: alice`, and as what: `x-roles: finance,support`. */
export const headerActor = ({ headers }: HttpRequestLike) => ({
  id: String(headers['x-user'] ?? ''),
  ...(headers['x-roles'] !== undefined && { roles: String(headers['x-roles']).split(',') }),
});

@Injectable()
export class OpenGuard implements CanActivate {
  canActivate(_context: ExecutionContext): boolean {
    return true;
  }
}

/**
 * Plays the script in the prompt, one step per answer: `say:<text>`, `call:<tool> <json>`, `fail:<status>`, `hang`; steps are separated by `|`. Anything
 * else is answered with `ok`.
 */
export class PromptModel implements ModelClient {
  readonly name = 'prompt';

  async generate({ messages, signal }: ModelRequest): Promise<ModelReply> {
    const from = messages.findLastIndex(({ role }) => role === 'user');
    const content = messages[from]?.content ?? '';
    const text =
      typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : '')).join('');
    const turn = messages.slice(from + 1).filter(({ role }) => role === 'assistant').length;
    const step = text.split('|')[turn] ?? 'say:ok';
    if (step === 'hang') {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    }
    const call = /^call:(\S+) (.*)$/s.exec(step);
    const usage = { inputTokens: 2, outputTokens: 1, totalTokens: 3 };
    return call
      ? {
          content: [{ type: 'tool-call', callId: `c${turn}`, name: String(call[1]), argumentsText: String(call[2]) }],
          finishReason: 'tool-calls',
          usage,
        }
      : { content: [{ type: 'text', text: step.replace(/^say:/, '') || 'ok' }], finishReason: 'stop', usage };
  }
}

const clerk = () =>
  agent(
    new PromptModel(),
    [
      tool('echo', () => ({ said: 'it' })),
      // Never answers in time, and nobody can tell what it did.
      tool('stuck', () => new Promise(() => {}), { recovery: 'manual', timeoutMs: 50 }),
      tool('pay', (input) => ({ paid: input.cents ?? null }), {
        asks: () => ({ reason: 'money leaves' }),
        parse: (input) =>
          typeof input.cents === 'number'
            ? { ok: true, input: { currency: 'EUR', ...input } }
            : { ok: false, problems: ['cents must be a number'] },
      }),
      tool('wire', () => 'wired', { asks: () => ({ risk: 'high', approverRole: 'finance' }) }),
      // What JSON has no form for, or another one.
      tool('odd', () => ({
        a: Number.NaN,
        b: Number.POSITIVE_INFINITY,
        c: -0,
        d: -Infinity,
        e: 2 ** 53 + 1,
        f: new Date(0),
        i: Buffer.from([0, 255]),
        j: undefined,
        k: new Error('x'),
        l: new URL('http://h/'),
      })),
      tool('hasty', () => 'done', { asks: () => ({ expiresInMs: 1 }) }),
      tool('inquire', (_input, { ask }) =>
        ask([
          { id: 'size', text: 'Which size?', choices: ['S', 'L'] },
          { id: 'why', text: 'Why?' },
        ]),
      ),
    ],
    { name: 'clerk' },
  );

@Global()
@Module({})
class EngineModule {}

export interface HttpHostOptions {
  adapter?: AdapterName;
  routes?: Partial<AgentRunsHttpOptions> | Partial<AgentRunsHttpOptions>[];
  controllers?: Type[];
  worker?: boolean;
  /** In memory unless given. */
  store?: RunStore;
  /** Of Fastify itself. */
  fastify?: ConstructorParameters<typeof FastifyAdapter>[0];
  configure?: (app: INestApplication) => void;
  /** Of the host's application, e.g. `rawBody`. */
  application?: NestApplicationOptions;
}

export interface HttpHost {
  app: INestApplication;
  runs: RunService;
  /** As alice, unless told otherwise. */
  get(path: string, headers?: Record<string, string>): request.Test;
  post(path: string, body?: string | object, headers?: Record<string, string>): request.Test;
  close(): Promise<void>;
}

/** The modules of a host: a running engine, and the routes. */
export async function hostModules({
  routes = {},
  worker = true,
  store = new MemoryRunStore(),
}: Pick<HttpHostOptions, 'routes' | 'worker' | 'store'> = {}) {
  const guardrail: InputGuardrail = {
    screen: ({ messages }) =>
      Promise.resolve(JSON.stringify(messages).includes('mischief') ? { refuse: 'no mischief' } : null),
  };
  const engine = await engineOver(store, clerk(), { worker }, new SystemClock(), { guardrail });
  const engineProviders = [
    { provide: RunService, useValue: engine.runs },
    { provide: AGENT_RUNS_STORE, useValue: store },
  ];
  const imports: DynamicModule[] = [
    { module: EngineModule, providers: engineProviders, exports: engineProviders },
    ...[routes]
      .flat()
      .map((registration) =>
        AgentRunsHttpModule.register({ guards: [OpenGuard], actorResolver: headerActor, ...registration }),
      ),
  ];
  return { engine, imports };
}

export async function startHttpHost(options: HttpHostOptions = {}): Promise<HttpHost> {
  const { adapter = 'express', controllers = [], configure, application } = options;
  const { engine, imports } = await hostModules(options);
  const reference = await Test.createTestingModule({
    imports,
    controllers,
  }).compile();
  const app = reference.createNestApplication(
    adapter === 'express' ? new ExpressAdapter() : new FastifyAdapter(options.fastify),
    {
      logger: false,
      ...application,
    },
  );
  configure?.(app);
  await app.init();
  await (app.getHttpAdapter().getInstance() as { ready?: () => Promise<void> }).ready?.();
  const server = app.getHttpServer() as Parameters<typeof request>[0];
  return {
    app,
    runs: app.get(RunService),
    get: (path, headers = {}) =>
      request(server)
        .get(path)
        .set({ 'x-user': 'alice', ...headers }),
    post: (path, body, headers = {}) => {
      const test = request(server)
        .post(path)
        .set({ 'x-user': 'alice', ...headers });
      return typeof body === 'string'
        ? test.set('content-type', headers['content-type'] ?? 'application/json').send(body)
        : test.send(body);
    },
    close: async () => {
      await app.close();
      await engine.stop();
    },
  };
}
