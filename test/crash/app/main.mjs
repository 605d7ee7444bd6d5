// The application under test. It is ordered to submit a run (or to submit it again), does what people do until the run is settled, and reports everything
// there is to know about it; with `crash` in the order it ends by SIGKILL at that commit instead. A process that lives on takes the next order.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Global, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import {
  AgentRunsModule,
  isSettled,
  ObserveRuns,
  RunMetrics,
  RunService,
  RunStore,
  RunWorker,
} from 'nestjs-agent-runs';
import { CrashExplorer, scriptedModel } from 'nestjs-agent-runs/testing';
import { TypeOrmRunStore } from 'nestjs-agent-runs/typeorm';
import { DataSource, Like } from 'typeorm';
import { databaseOptions } from './database.mjs';
import { Note } from './note.mjs';
import { OutsideWorld } from './outside-world.mjs';
import { people } from './people.workload.mjs';
import { sixPolicies } from './six-policies.workload.mjs';
import { ToldEvents } from './told-events.mjs';

const { DATABASE_URL, WORLD_FILE, WORKLOAD, LEASE } = process.env;
const life = Number(process.env.LIFE);
/** `{ runId, fresh, crash?: { side, commit } }`; `fresh` when the run cannot exist yet. The first one has to be known before anything is claimed. */
let order = JSON.parse(process.env.ORDER);
const world = new OutsideWorld(WORLD_FILE, life);
const told = new ToldEvents(() => order);
const workload = { 'six-policies': sixPolicies, people }[WORKLOAD]({ world, told });

// ---- the end of it ----

/** Of the run in hand, by the number the store gives them. */
let commits = new Map();

function atCommit(here) {
  return ({ number, runId, kind, entries }) => {
    if (runId !== order.runId) return;
    const texts = entries.map(({ type, key }) => (key ? `${type} ${key}` : type));
    if (here === 'before') commits.set(number, { number: commits.size + 1, kind, entries: texts });
    const commit = commits.get(number);
    if (here !== order.crash?.side || commit.number !== order.crash.commit) return;
    world.note({ fact: 'killed', runId, side: here, ...commit });
    process.kill(process.pid, 'SIGKILL');
  };
}

// ---- the application ----

const script = scriptedModel([], { place: 'prompt', strict: ['results', 'ids', 'blank', 'unicode'] });
const model = {
  name: script.name,
  async generate(request) {
    const index = request.messages.filter(({ role }) => role === 'assistant').length;
    const { runId } = order;
    world.note({ fact: 'model', runId, index });
    // A run may be taken over before the application has come all the way up.
    await workload.duringModelCall?.(index, runId, (await booting).get(RunService));
    return script.generate(request);
  },
};

class StoreModule {}
Module({
  providers: [
    {
      provide: RunStore,
      useFactory: (dataSource) =>
        new CrashExplorer(new TypeOrmRunStore(dataSource, { migrate: true }), {
          before: atCommit('before'),
          after: atCommit('after'),
        }),
      inject: [getDataSourceToken()],
    },
  ],
  exports: [RunStore],
})(StoreModule);
Global()(StoreModule);

class Observer {
  onEvent(event) {
    told.onEvent(event);
  }
}
ObserveRuns()(Observer);

class AppModule {}
Module({
  imports: [
    TypeOrmModule.forRoot({
      ...databaseOptions(DATABASE_URL),
      entities: [Note],
      synchronize: life === 1,
      retryAttempts: 0,
    }),
    StoreModule,
    AgentRunsModule.forRoot({
      models: { default: model },
      trigger: 'interval',
      lease: LEASE,
      reconcileEvery: '100ms',
      pollInterval: '100ms',
      workerName: `life-${life}`,
    }),
  ],
  providers: [Observer, ...workload.providers],
})(AppModule);

const booting = NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'], abortOnError: false });

// ---- its life ----

async function settle(runs) {
  const { agent, prompt, budget } = workload;
  const { runId } = order;
  const names = { runId, requestId: runId, sessionId: runId };
  await runs.start({ agent, prompt, ...names, ...(budget && { budget }) });
  for (;;) {
    const run = await runs.result(runId);
    if (isSettled(run.status)) return run;
    await workload.goOn(run, runs);
    await sleep(1);
  }
}

/** What is still queued, and what was delivered: a transition shows that by its id alone. */
async function readInbox(store, runId, entries) {
  const look = async (inboxRequestId) =>
    (await store.transition({ runId, inboxRequestId, decide: (locked) => ({ result: locked.inbox }) })).result;
  const steered = entries.filter(({ type }) => type === 'run.steered').map(({ requestId }) => requestId);
  const delivered = await Promise.all([...new Set(steered)].map(look));
  return [...delivered.flat(), ...(await look(undefined))].sort((a, b) => a.order - b.order);
}

async function report(app, run) {
  const runs = app.get(RunService);
  const store = app.get(RunStore, { strict: false });
  const { entries } = await store.readJournal(run.id, 0, 10_000);
  const inbox = await readInbox(store, run.id, entries);
  const { items: interactions } = await store.interactions({ runId: run.id, limit: 100 });
  return {
    run,
    entries,
    inbox,
    interactions,
    messages: await runs.messages(run.id),
    operations: (await runs.snapshot(run.id)).operations,
    session: await store.session(run.id),
    metrics: await app.get(RunMetrics).read(),
    notes: await app
      .get(DataSource)
      .getRepository(Note)
      .findBy({ operationId: Like(`${run.id}/%`) }),
    worker: app.get(RunWorker).status(),
    commits: [...commits.values()],
  };
}

async function serve(app) {
  const patience = setTimeout(() => void giveUp(app), 20_000);
  process.send(await report(app, await settle(app.get(RunService))));
  clearTimeout(patience);
}

async function giveUp(app) {
  const run = await app.get(RunService).get(order.runId);
  process.stderr.write(`the run does not settle: ${JSON.stringify({ run, latest: [...commits.values()].at(-1) })}\n`);
  process.exit(3);
}

/** An orderly end. Says which workers are alive when this one has signed off. */
async function stop(app) {
  await app.get(RunWorker).drain();
  const workers = await app.get(RunStore, { strict: false }).liveWorkers();
  await app.close();
  process.send({ workerId: app.get(RunWorker).workerId, live: workers.map(({ id }) => id) });
  process.disconnect();
}

const app = await booting;
process.on('message', (next) => {
  if (next === 'stop') return stop(app);
  order = next;
  commits = new Map();
  return serve(app);
});
await serve(app);
