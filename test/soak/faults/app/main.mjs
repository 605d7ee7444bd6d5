// The application under test: a Nest host on the built package, driven over IPC. Its tools and its model do nothing themselves; they ask the far side, which is
// the parent process, so that what happened outside is known whatever becomes of this process and its database.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { AgentRunsModule, RunMetrics, RunRecovery, RunService, RunStore, RunWorker } from 'nestjs-agent-runs';
import { AgentRunsTypeOrmModule } from 'nestjs-agent-runs/typeorm';
import { Note } from '../../../crash/app/note.mjs';
import { deskAgent } from './desk.agent.mjs';
import { FarSide } from './far-side.mjs';
import { poolFacts } from './pool-facts.mjs';

const { dataSource, store, runs, agent, hasNotes } = JSON.parse(process.env.HOST_OPTIONS);

const farSide = new FarSide();
const { model, providers } = deskAgent(farSide, agent, hasNotes);

class AppModule {}
Module({
  imports: [
    TypeOrmModule.forRoot({ ...dataSource, entities: [Note], retryAttempts: 0 }),
    AgentRunsTypeOrmModule.forRoot(store),
    AgentRunsModule.forRoot({ trigger: 'interval', models: { default: model }, ...runs }),
  ],
  providers,
})(AppModule);

const app = await NestFactory.createApplicationContext(AppModule, {
  logger: ['error', 'warn'],
  abortOnError: false,
}).catch((error) => {
  process.send({ failed: errorFacts(error) });
  process.disconnect();
});

if (app) {
  app.enableShutdownHooks(['SIGTERM']);
  const services = {
    runs: app.get(RunService),
    worker: app.get(RunWorker),
    recovery: app.get(RunRecovery),
    metrics: app.get(RunMetrics),
    store: app.get(RunStore, { strict: false }),
    database: app.get(getDataSourceToken()),
    clock: { set: (byMs) => globalThis.setClock(byMs) },
    pool: { facts: () => poolFacts(app.get(getDataSourceToken())) },
  };
  process.on('message', async ({ id, service, method, args }) => {
    // An answer of the far side.
    if (service === undefined) return;
    if (service === 'app') {
      await app.close();
      // Nothing else may keep the process alive.
      return process.disconnect();
    }
    try {
      process.send({ id, result: await services[service][method](...args) });
    } catch (error) {
      process.send({ id, error: errorFacts(error) });
    }
  });
  process.send({ up: app.get(RunWorker).workerId });
}

function errorFacts(error) {
  return { name: error.name, code: error.code, message: error.message, problems: error.problems };
}
