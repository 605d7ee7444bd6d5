// One process of a host, as a user would write it, over the built package. It does what the parent orders, at the moment the parent names, and answers with
// what came of it; what its tools did, it tells at once.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AgentRunsError, AgentRunsModule, RunService, RunStore } from 'nestjs-agent-runs';
import { scriptedModel } from 'nestjs-agent-runs/testing';
import { AgentRunsTypeOrmModule } from 'nestjs-agent-runs/typeorm';
import { declareAgents } from './agents.mjs';
import { gated, Gates } from './gates.mjs';
import { HostDatabase } from './host-database.mjs';
import { verbsOf } from './verbs.mjs';

/** `structure` and `options` are those of AgentRunsModule. */
const { url, isolation, poolSize, migrate, structure, options } = JSON.parse(process.env.RACER);

const host = await HostDatabase.open(url, isolation, poolSize);
const { dataSource } = host;
const gates = new Gates();
const note = (effect) => process.send({ effect });
const ledger = (operationId) =>
  dataSource.query(`INSERT INTO ledger (operation_id, process) VALUES ('${operationId}', '${process.pid}')`);

/** Warnings and errors that were logged. */
const logged = [];
const keep = (level) => (message) =>
  logged.push(`${level}: ${typeof message === 'string' ? message : JSON.stringify(message)}`);
const logger = { log: () => undefined, warn: keep('warn'), error: keep('error'), fatal: keep('fatal') };

class RacerModule {}
Module({
  imports: [
    TypeOrmModule.forRootAsync({ useFactory: () => dataSource.options, dataSourceFactory: async () => dataSource }),
    AgentRunsTypeOrmModule.forRoot({ migrate }),
    AgentRunsModule.forRoot({
      models: { default: gated(scriptedModel([], { place: 'prompt' }), gates, note) },
      ...structure,
      ...options,
    }),
  ],
  providers: declareAgents({ note, gates, ledger }),
})(RacerModule);

const app = await NestFactory.createApplicationContext(RacerModule, { logger, abortOnError: false });
app.enableShutdownHooks();
const store = app.get(RunStore, { strict: false });
const verbs = verbsOf({ app, host, runs: app.get(RunService), store, note });

verbs.report = () => ({ logged: logged.splice(0), conflicts: store.conflicts() });
verbs.answer = () => undefined;
verbs.open = (gate) => gates.open(gate);
verbs.stop = async () => {
  await app.close();
  process.nextTick(() => process.disconnect());
};

process.on('message', async ({ id, verb, args, at }) => {
  await moment(at);
  const began = now();
  try {
    const value = await verbs[verb](...args);
    process.send({ id, value: value ?? null, began, ended: now() });
  } catch (error) {
    const code = AgentRunsError.is(error) ? error.code : 'UNEXPECTED';
    process.send({ id, code, text: String(error?.stack ?? error), began, ended: now() });
  }
});
process.send({ ready: true });

/** Ms of the clock that all processes of the machine share. */
function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** As exact as a timer is. */
function moment(at) {
  const waitMs = at === undefined ? 0 : at - now();
  return waitMs > 0 ? new Promise((resolve) => setTimeout(resolve, waitMs)) : Promise.resolve();
}
