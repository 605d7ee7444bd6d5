/** An application with the built package: tools of each kind of schema, and models whose replies a case scripts. */
import 'reflect-metadata';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import { Agent, AgentRunsModule, AgentTool, ASK_USER, RunService } from 'nestjs-agent-runs';
import { aiSdkModel } from 'nestjs-agent-runs/ai-sdk';
import { AgentRunsHttpModule } from 'nestjs-agent-runs/http';
import { z } from 'zod';

const decorate = (decorators, target, key) => {
  const descriptor = key === undefined ? undefined : Object.getOwnPropertyDescriptor(target, key);
  for (const decorator of decorators.reverse()) decorator(target, key, descriptor);
};

class PaymentDto {}
const field = (key, type, ...decorators) => {
  Reflect.defineMetadata('design:type', type, PaymentDto.prototype, key);
  decorate(decorators, PaymentDto.prototype, key);
};
field('cents', Number, IsInt(), Min(1), Max(1_000_000));
field('to', String, IsString(), MaxLength(100));
field('note', String, IsOptional(), IsString(), MaxLength(1_000));

const isPayment = (value) =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).every((key) => ['cents', 'to', 'note'].includes(key)) &&
  Number.isInteger(value.cents) &&
  value.cents >= 1 &&
  value.cents <= 1_000_000 &&
  typeof value.to === 'string' &&
  value.to.length <= 100 &&
  (value.note == null || (typeof value.note === 'string' && value.note.length <= 1_000));

const payment = {
  dto: PaymentDto,
  zod: z.strictObject({
    cents: z.int().min(1).max(1_000_000),
    to: z.string().max(100),
    note: z.string().max(1_000).nullish(),
  }),
  json: {
    type: 'object',
    required: ['cents', 'to'],
    additionalProperties: false,
    properties: {
      cents: { type: 'integer', minimum: 1, maximum: 1_000_000 },
      to: { type: 'string', maxLength: 100 },
      note: { type: ['string', 'null'], maxLength: 1_000 },
    },
  },
};

/** What was executed since a case began. */
export const executed = [];

class PaymentTools {
  pay_dto(input) {
    return note('pay_dto', input, isPayment(input));
  }
  pay_zod(input) {
    return note('pay_zod', input, isPayment(input));
  }
  pay_json(input) {
    return note('pay_json', input, isPayment(input));
  }
  approved(input) {
    return note('approved', input, isPayment(input));
  }
  anything(input) {
    return note('anything', input, areRepresentable(input));
  }
}

function note(tool, input, isValid) {
  executed.push({ tool, isValid, input });
  return { done: true };
}

/** Whether each whole number in a value is one that JavaScript tells from its neighbours. */
function areRepresentable(value) {
  const left = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === 'number' && (!Number.isFinite(one) || (Number.isInteger(one) && !Number.isSafeInteger(one))))
      return false;
    if (typeof one === 'object' && one !== null) for (const key of Object.keys(one)) left.push(one[key]);
  }
  return true;
}

const tools = [
  ['pay_dto', payment.dto, 'manual'],
  ['pay_zod', payment.zod, 'idempotent'],
  ['pay_json', payment.json, 'safe'],
  ['approved', payment.dto, 'manual', true],
  ['anything', { type: 'object' }, 'manual'],
];
for (const [name, input, recovery, approval = false] of tools) {
  const options = { name, description: `Pays by ${name}.`, input, recovery, approval };
  decorate([AgentTool(options)], PaymentTools.prototype, name);
}
decorate([Injectable()], PaymentTools);

const MODEL_RETRY = { maxAttempts: 2, initialDelay: 1, maxDelay: 1, maxRetryAfter: 1 };
class SdkAgent {}
class ClientAgent {}
for (const [type, name, model] of [
  [SdkAgent, 'sdk', 'sdk'],
  [ClientAgent, 'client', 'client'],
]) {
  const options = {
    name,
    version: '1',
    model,
    instructions: 'Help.',
    tools: [PaymentTools, ASK_USER],
    maxTurns: 6,
    modelRetry: MODEL_RETRY,
    truncatedCalls: 'feedback',
  };
  decorate([Agent(options)], type);
}

/** What the models answer with next: text of an HTTP body, and replies of a host's own client. */
export const script = { bodies: [], replies: [] };

const good = (text) => ({
  id: 'x',
  created: 0,
  model: 'm',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text } }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

const provider = createOpenAICompatible({
  name: 'fuzz',
  baseURL: 'http://model.invalid/v1',
  apiKey: 'sk-fuzz',
  fetch: async () => {
    // As over a network: an answer comes in a turn of its own.
    await new Promise(setImmediate);
    const {
      status = 200,
      body = JSON.stringify(good('done')),
      type = 'application/json',
    } = script.bodies.shift() ?? {};
    return new Response(status === 204 ? null : body, { status, headers: { 'content-type': type } });
  },
});

const client = {
  name: 'host-client',
  generate: async () => {
    await new Promise(setImmediate);
    const next = script.replies.shift();
    if (next === undefined)
      return {
        content: [{ type: 'text', text: 'done' }],
        finishReason: 'stop',
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      };
    if (next?.thrown !== undefined) throw next.thrown;
    return next;
  },
};

/** Bytes. Above what hosts have by default, so that large bodies reach the routes. */
const BODY_LIMIT = 8_388_608;

export async function startHost(adapter) {
  class AppModule {}
  const metadata = {
    imports: [
      AgentRunsModule.forRoot({
        models: { default: client, client, sdk: aiSdkModel(provider.chatModel('m')) },
        trigger: 'interval',
        maxPendingRuns: 1_000_000,
        allowMemoryStore: true,
      }),
      AgentRunsHttpModule.register({ allowUnguarded: true, actorResolver: () => ({ id: 'alice', roles: ['all'] }) }),
    ],
    providers: [PaymentTools, SdkAgent, ClientAgent],
  };
  decorate([Module(metadata)], AppModule);
  const app = await NestFactory.create(
    AppModule,
    adapter === 'fastify' ? new FastifyAdapter({ bodyLimit: BODY_LIMIT }) : new ExpressAdapter(),
    {
      logger: false,
      abortOnError: false,
    },
  );
  if (adapter === 'express') app.useBodyParser('json', { limit: BODY_LIMIT });
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address();
  return { app, runs: app.get(RunService), port, close: () => app.close() };
}
