// A Nest application as a user would write it, over the built package: one agent, two tools, a model that answers at once.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Agent, AgentRunsModule, AgentTool, ObserveRuns, RunService, RunWorker } from 'nestjs-agent-runs';
import { AgentRunsTypeOrmModule } from 'nestjs-agent-runs/typeorm';
import { DataSource } from 'typeorm';
import { InstantModel } from './instant-model.mjs';

const STOPS = new Set(['run.completed', 'run.failed', 'run.attention_needed', 'run.suspended', 'run.cancelled']);
const INPUT = {
  type: 'object',
  properties: { turn: { type: 'integer' }, bytes: { type: 'integer' } },
  required: ['turn', 'bytes'],
  additionalProperties: false,
};

/**
 * @param settings options of AgentRunsModule; `worker: false` makes a process that only starts and answers
 * @returns what a measure works with; `close` ends it like a shutdown
 */
export async function startApplication(database, settings = {}) {
  const model = new InstantModel();
  const stops = new Stops();

  class BenchTools {
    look({ bytes }) {
      return 'r'.repeat(bytes);
    }
    pay({ bytes }) {
      return 'p'.repeat(bytes);
    }
  }
  decorate(
    AgentTool({ name: 'look', description: 'Looks something up.', input: INPUT, recovery: 'safe' }),
    BenchTools,
    'look',
  );
  decorate(AgentTool({ name: 'pay', description: 'Needs a person.', input: INPUT, approval: true }), BenchTools, 'pay');

  class BenchAgent {}
  Agent({
    name: 'bench',
    version: '1',
    instructions: 'Use the tool as often as you are told, then answer.',
    tools: ['look', 'pay'],
    maxTurns: 1_000,
  })(BenchAgent);

  class Watcher {
    onEvent({ runId, type }) {
      if (STOPS.has(type)) stops.tell(runId, type);
    }
  }
  ObserveRuns()(Watcher);

  class BenchModule {}
  Module({
    imports: [
      TypeOrmModule.forRoot({ ...database.dataSource(), entities: [] }),
      AgentRunsTypeOrmModule.forRoot({ migrate: true }),
      AgentRunsModule.forRoot({
        models: { default: model },
        trigger: 'interval',
        maxConcurrentRuns: 64,
        maxPendingRuns: 100_000,
        ...settings,
      }),
    ],
    providers: [BenchTools, BenchAgent, Watcher],
  })(BenchModule);

  const context = await NestFactory.createApplicationContext(BenchModule, { logger: ['error'] });
  context.enableShutdownHooks();
  const runs = context.get(RunService);

  /** Starts a run and resolves when it has stopped; told by an observer, which reads nothing. */
  const run = async (prompt) => {
    const { id } = await runs.start({ agent: 'bench', prompt });
    return { runId: id, stop: await stops.of(id) };
  };
  const complete = async (prompt) => {
    const { runId, stop } = await run(prompt);
    if (stop === 'run.completed') return runId;
    throw new Error(`Run ${runId} stopped with ${stop}: ${JSON.stringify(await runs.get(runId))}`);
  };

  return {
    model,
    runs,
    run,
    complete,
    stopped: (runId) => stops.of(runId),
    worker: context.get(RunWorker),
    query: (sql) => context.get(DataSource).query(sql),
    close: () => context.close(),
  };
}

/** Meets those who wait for a run with what was told of it, whichever comes first. */
class Stops {
  #told = new Map();
  #waiting = new Map();

  tell(runId, type) {
    const resolve = this.#waiting.get(runId);
    if (!resolve) return void this.#told.set(runId, type);
    this.#waiting.delete(runId);
    resolve(type);
  }

  of(runId) {
    const type = this.#told.get(runId);
    if (type === undefined) return new Promise((resolve) => this.#waiting.set(runId, resolve));
    this.#told.delete(runId);
    return type;
  }
}

function decorate(decorator, type, method) {
  decorator(type.prototype, method, Object.getOwnPropertyDescriptor(type.prototype, method));
}
