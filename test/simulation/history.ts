// One history: real engines as workers over the simulated database, callers, people who decide, and the sweeps. It goes on until everything has come to rest
// after the faults, and then everything must be settled, or wait for a reason.
import type { AgentDefinition, Offer } from '../../lib/contracts/agent-definition.js';
import type { Interaction } from '../../lib/contracts/interaction.js';
import type { AgentCatalog } from '../../lib/contracts/agent-definition.js';
import type { LifecycleEvent } from '../../lib/contracts/ports/host.port.js';
import type { InteractionResponse } from '../../lib/contracts/run-requests.js';
import type { RunRecord } from '../../lib/contracts/run.js';
import { isSettled } from '../../lib/contracts/run-status.js';
import { createEngine, type Engine } from '../../lib/engine/engine.js';
import { DEFAULT_ENGINE_OPTIONS } from '../../lib/engine/engine-ports.js';
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import type { RunScope } from '../../lib/contracts/ports/system.port.js';
import { Sha256Digester } from '../../lib/system/system-ports.js';
import { assertSound } from '../support/sound-journal.js';
import { agentsOf, promptOf, runOfTask, type Stage } from './cast.js';
import { Invariants } from './invariants.js';
import { Ledger } from './ledger.js';
import { CALM_AT, LEASE_MS, type Action, type Plan, type PlannedProcess, type WorldFault } from './plan.js';
import { SimDatabase } from './sim-database.js';
import { EPOCH, FaultTable, SimProcess } from './sim-process.js';
import { SimStore } from './sim-store.js';
import { World, type Violation } from './world.js';

/** By then everything must have come to rest. */
const REST_BY = 100_000;
const SWEEP_MS = 1_000;

/** No tool of the cast waits for a run, so that nobody asks which run the running code is part of. Following it would cost every promise. */
const NO_SCOPE: RunScope = { enter: (_call, body) => body(), current: () => null };

export interface Outcome {
  violation: Violation | null;
  /** Over everything that happened. */
  digest: string;
  timeline: readonly string[];
  virtualMs: number;
}

/** A process and what replaces it when it dies. */
interface Place {
  planned: PlannedProcess;
  process: SimProcess;
  engine: Engine;
  lives: number;
}

/** To be called under `guardGlobals`. */
export async function runHistory(plan: Plan): Promise<Outcome> {
  const history = new History(plan);
  await history.run();
  const { world } = history;
  return { violation: world.violation, digest: world.digest(), timeline: world.timeline, virtualMs: world.time };
}

class History {
  readonly world: World;
  private readonly database: SimDatabase;
  private readonly faults: FaultTable;
  private readonly stage: Stage;
  private readonly places: Place[] = [];
  /** By the name of its process. */
  private readonly engines = new Map<string, Engine>();
  /** What each process told last about each run. */
  private readonly told = new Map<string, number>();
  private readonly decisions = new Map<string, string>();
  private readonly digester = new Sha256Digester();
  private isCalm = false;

  constructor(private readonly plan: Plan) {
    this.world = new World(plan.seed);
    this.database = new SimDatabase(this.world, plan.isolation);
    this.faults = new FaultTable(plan.faults);
    const ledger = new Ledger();
    const invariants = new Invariants(
      this.world,
      this.database,
      ledger,
      (process) => this.engines.get(process)?.worker.workerId,
    );
    const { world, database } = this;
    this.stage = { world, database, invariants, ledger, requests: new Map() };
    database.onCommit = (commit) => {
      invariants.committed(commit);
      for (const change of commit.commit.changes) {
        if (change.kind === 'interaction' && change.interaction.status === 'pending')
          this.noticeAsk(change.interaction);
        if (change.kind === 'header' && change.change.status === 'needs_attention') this.noticeAttention(change.runId);
      }
    };
  }

  async run(): Promise<void> {
    const { world, plan } = this;
    plan.processes.forEach((planned, index) => this.places.push(this.begin(planned, index, 1)));
    for (const action of plan.actions) world.after(action.at, () => void this.act(action));
    for (const fault of plan.worldFaults) world.after(fault.at, () => this.strike(fault));
    this.sweep(0);
    world.after(CALM_AT, () => this.calm());
    let looked = 0;
    let atRest = false;
    await world.run(() => {
      if (!this.isCalm || world.time < looked) return world.time > REST_BY;
      looked = world.time + 500;
      atRest = this.isAtRest();
      return atRest || world.time > REST_BY;
    });
    if (world.violation) return;
    if (!atRest) return world.violate('liveness', `not at rest after ${REST_BY} ms: ${this.states()}`);
    await this.end();
  }

  // ---- processes ----

  private begin(planned: PlannedProcess, index: number, lives: number): Place {
    const name = `p${index + 1}${'abcdefghijklmnopqrstuvwxyz'[lives - 1] ?? lives}`;
    const process = new SimProcess(this.world, name, this.faults, planned.rate, planned.offset);
    const store = new SimStore(this.database, process);
    const catalog = new Catalog(agentsOf(this.stage, process, planned.isLax, () => engine.worker.workerId));
    const log = (level: string) => (message: string, fields?: object) =>
      this.world.note(`${name} ${level}: ${message} ${JSON.stringify(fields ?? {})}`);
    const engine: Engine = createEngine({
      store,
      catalog,
      clock: process,
      ids: process,
      digester: this.digester,
      scope: NO_SCOPE,
      log: { debug: () => undefined, info: log('info'), warn: log('warn'), error: log('error') },
      guardrail: null,
      approvalResolver: null,
      beforeStart: null,
      observers: [{ onEvent: (event) => this.observe(process, event) }],
      options: {
        ...DEFAULT_ENGINE_OPTIONS,
        workerName: name,
        leaseMs: LEASE_MS,
        pollMs: 250,
        pollIdleMs: 1_000,
        maxConcurrentRuns: 2,
        shutdownTimeoutMs: 1_000,
        unknownVersionAfterMs: 20_000,
        approvalExpiresMs: 4_000,
        resumeAfterAnswers: this.plan.resumes,
        onStoreFailure: (error) => this.world.violate('I10', `${name} takes the store for broken: ${error.message}`),
      },
    });
    this.engines.set(name, engine);
    const close = process.onDeath;
    process.onDeath = () => {
      close();
      this.replace(index, name);
    };
    void engine.worker.start();
    return { planned, process, engine, lives };
  }

  private replace(index: number, name: string): void {
    this.world.after(this.isCalm ? 100 : 300 + Math.floor(2_000 * this.world.chanceOf(`restart/${name}`)), () => {
      const { planned, lives } = this.places[index] as Place;
      this.places[index] = this.begin(planned, index, lives + 1);
      this.world.note(`${this.places[index]?.process.name}: begins`);
    });
  }

  private strike(fault: WorldFault): void {
    if (this.isCalm) return;
    if (fault.kind === 'outage') {
      this.world.note(`db: down for ${fault.ms} ms`);
      this.database.downUntil = this.world.time + fault.ms;
      return;
    }
    const { process, engine } = this.places[fault.process] as Place;
    switch (fault.kind) {
      case 'clock set':
        return process.setClock(fault.ms);
      case 'kill':
        return process.kill();
      case 'stop':
        return process.stop(fault.ms);
      case 'drain':
        this.world.note(`${process.name}: drains`);
        process.later(0, () => void engine.worker.drain().then(() => process.kill()));
    }
  }

  /** One process after the other sweeps, as the host's scheduler has it. */
  private sweep(turn: number): void {
    this.world.after(SWEEP_MS, () => {
      const { process, engine } = this.places[turn % this.places.length] as Place;
      process.later(0, () => {
        void engine.recovery.reconcile();
        if (turn % 2 === 0) void engine.recovery.expireInteractions();
        else void engine.recovery.runDueBackoffs();
      });
      this.sweep(turn + 1);
    });
  }

  private calm(): void {
    this.world.note('calm');
    this.isCalm = true;
    this.faults.isOver = true;
    this.database.downUntil = -1;
    for (const { process } of this.places) process.goOn();
    for (const interaction of this.database.tables.pendingInteractions()) this.decide(interaction, 0);
    for (const { id, status } of this.database.tables.runs.values())
      if (status === 'needs_attention') this.noticeAttention(id);
  }

  // ---- callers ----

  private async act({ verb, task, process: index }: Action): Promise<void> {
    const { process, engine } = this.places[index] as Place;
    const planned = this.plan.runs.find((run) => run.task === task);
    if (!planned) return;
    const runId = runOfTask(this.database, task)?.id;
    await this.ask(process, `${verb} ${task}`, async () => {
      const { runs } = engine;
      const note = { by: 'caller', reason: verb };
      if (verb === 'start') {
        const { agent, turns, sessionId, budget, deadlineMs } = planned;
        const run = await runs.start({
          agent,
          prompt: promptOf(task, turns),
          requestId: task,
          enqueue: true,
          ...(sessionId !== null && { sessionId }),
          ...(budget !== null && { budget: { maxTotalTokens: budget } }),
          ...(deadlineMs !== null && { deadline: new Date(EPOCH + deadlineMs) }),
        });
        const stored = this.database.tables.runs.get(run.id);
        this.world.require(stored?.requestId === task, 'I2', `start of ${task} was answered with ${run.id}`);
        return;
      }
      if (runId === undefined) return;
      if (verb === 'cancel') await runs.cancel(runId, note);
      else if (verb === 'interrupt') await runs.interrupt(runId, note);
      else if (verb === 'resume') await runs.resume(runId, note);
      else if (verb === 'take over')
        await runs.resume(runId, { allowRunningTakeover: true, confirmation: { by: 'caller', reason: verb } });
      else if (verb === 'steer') await runs.steer(runId, 'steered', { sender: 'caller' });
      else if (verb === 'retry') await runs.retry(runId, note);
      else if (verb === 'restart') await runs.restart(runId, note);
      else await runs.grantBudget(runId, 50, { by: 'caller' });
    });
    // Whoever gets no answer asks again, elsewhere.
    if (verb === 'start' && !runOfTask(this.database, task) && !this.isCalm)
      this.world.after(700, () => void this.act({ at: 0, verb, task, process: (index + 1) % this.places.length }));
  }

  /** Never rejects; what a caller is refused is its answer. @returns whether it was done */
  private ask(process: SimProcess, what: string, work: () => Promise<void>): Promise<boolean> {
    return new Promise((resolve) => {
      const refused = (error: unknown): void => {
        const code = AgentRunsError.is(error) ? error.code : String(error);
        this.world.note(`${process.name} ${what}: ${code}`);
        if (!AgentRunsError.is(error)) this.world.violate('caller', `${what}: ${(error as Error).stack}`);
        resolve(false);
      };
      process.later(0, () => {
        this.world.note(`${process.name} ${what}`);
        work().then(() => resolve(true), refused);
      });
      // Whoever asked a process that died gets no answer.
      this.world.after(5_000, () => resolve(false));
    });
  }

  // ---- people ----

  private noticeAsk(interaction: Interaction): void {
    const chance = this.world.chanceOf(`decision/${interaction.id}`);
    if (this.isCalm) this.decide(interaction, 200);
    else if (chance < 0.9) this.decide(interaction, Math.floor(chance * 3_500));
    if (chance < 0.3) this.decide(interaction, Math.floor(chance * 3_500) + 3, 'other');
  }

  private decide({ id, runId, kind }: Interaction, ms: number, by = 'person'): void {
    const chance = this.world.chanceOf(`answer/${id}/${by}`);
    this.world.after(ms, () => {
      const { process, engine } = this.anyPlace(`${id}/${by}`);
      const response = responseOf(kind, chance, by);
      void this.ask(process, `decides ${id}`, async () => {
        const { status, decision } = await engine.runs.respond(runId, id, response);
        this.world.require(
          this.database.tables.interactions.get(id)?.status !== 'pending',
          'I2',
          `the decision of ${id} was answered as ${status}, and is not stored`,
        );
        const text = JSON.stringify(decision);
        const before = this.decisions.get(id) ?? text;
        this.decisions.set(id, text);
        this.world.require(before === text, 'I7', `${id} was decided as ${before} and as ${text}`);
      }).then((isDone) => {
        if (!isDone && this.database.tables.interactions.get(id)?.status === 'pending')
          this.decide({ id, runId, kind } as Interaction, 800, by);
      });
    });
  }

  /** Somebody looks it up at the far side, once nobody can be at work on it any more. */
  private noticeAttention(runId: string): void {
    const { database, world, stage } = this;
    const ms = this.isCalm ? 2_000 : 500 + Math.floor(3_000 * world.chanceOf(`attention/${runId}`));
    world.after(ms, () => {
      const run = database.tables.runs.get(runId);
      if (run?.status !== 'needs_attention') return;
      const { process, engine } = this.anyPlace(`${runId}/${run.sequence}`);
      const key = run.attention?.operations?.[0] ?? run.attention?.operationKey;
      void this.ask(process, `looks after ${runId} ${key}`, async () => {
        if (run.attention?.reason !== 'uncertain_outcome' || key === undefined) {
          if (this.isCalm) await engine.runs.cancel(runId, { by: 'operator' });
          else await engine.runs.retry(runId, { by: 'operator' });
          return;
        }
        const happened = stage.ledger.effects(`${runId}/${key}`).length > 0;
        const resolution = happened ? ({ output: { did: 'looked up' } } as const) : ({ notHappened: true } as const);
        await engine.runs.resolveTool(runId, { key, by: 'operator', ...resolution });
      }).then(() => this.noticeAttention(runId));
    });
  }

  private anyPlace(about: string): Place {
    const first = Math.floor(this.world.chanceOf(`place/${about}`) * this.places.length);
    const inOrder = [...this.places.slice(first), ...this.places.slice(0, first)];
    return inOrder.find(({ process }) => process.state === 'up') ?? (inOrder[0] as Place);
  }

  // ---- observers ----

  /**
   * I2: only what is committed is told, each entry once, what an attempt appends in order. An append whose answer is late
   * may be told after what others have committed since.
   */
  private observe({ name, world }: SimProcess, { runId, sequence, type }: LifecycleEvent): void {
    world.note(`${name} tells ${runId} ${sequence} ${type}`);
    const { types, writers } = this.stage.invariants.of(runId);
    const stored = types[sequence - 1];
    world.require(stored === type, 'I2', `${name} tells ${type} as entry ${sequence} of run ${runId}: it is ${stored}`);
    const key = `${name}/${runId}/${writers[sequence - 1]}`;
    world.require(
      (this.told.get(key) ?? 0) < sequence,
      'I2',
      `${name} tells entry ${sequence} of run ${runId} after ${this.told.get(key)}`,
    );
    this.told.set(key, sequence);
  }

  // ---- the end ----

  private isAtRest(): boolean {
    if (this.places.some(({ process }) => process.state !== 'up')) return false;
    if (this.database.openTransactions > 0) return false;
    for (const run of this.database.tables.runs.values()) if (!this.isParked(run)) return false;
    return this.places.every(({ engine }) => engine.worker.status().activeRuns === 0);
  }

  /** Settled, or waiting for somebody for a reason that is stored. */
  private isParked(run: RunRecord): boolean {
    if (isSettled(run.status)) return true;
    switch (run.status) {
      case 'interrupted':
        return true;
      case 'waiting':
        return run.waitingFor.includes('budget') || (this.plan.resumes === 'manual' && !this.hasPending(run.id));
      case 'queued': {
        const head = this.database.tables.sessions.get(run.sessionId ?? '')?.headRunId;
        const first = this.database.tables.runs.get(head ?? '');
        return first !== undefined && !isSettled(first.status) && first.status !== 'queued' && this.isParked(first);
      }
      default:
        return false;
    }
  }

  private hasPending(runId: string): boolean {
    return this.database.tables.interactionsOf(runId).some(({ status }) => status === 'pending');
  }

  private states(): string {
    return [...this.database.tables.runs.values()]
      .map(({ id, status, waitingFor, attention, owner }) =>
        [id, status, waitingFor.join('+'), attention?.reason, owner].filter(Boolean).join(' '),
      )
      .join(', ');
  }

  private async end(): Promise<void> {
    const { world } = this;
    let drained = 0;
    for (const { engine } of this.places) void engine.worker.drain().then(() => (drained += 1));
    const until = world.time + 20_000;
    await world.run(() => drained === this.places.length || world.time > until);
    world.require(drained === this.places.length, 'liveness', 'a worker at rest does not end');
    // A call that was let go of keeps its timeout until it ends or is cut.
    const timers = (): number => this.places.reduce((count, { process }) => count + process.pendingTimers, 0);
    await world.run(() => timers() === 0 || world.time > until);
    world.require(timers() === 0, 'liveness', `${timers()} timers are left`);
    for (const task of this.plan.runs.map((run) => run.task)) this.audit(task);
    await this.assertJournals();
  }

  /** The ledger against what each tool's recovery policy allows. */
  private audit(task: string): void {
    const { world, database, stage } = this;
    const run = runOfTask(database, task);
    if (!run) return;
    for (const call of stage.invariants.of(run.id).calls.values()) {
      const operation = `${run.id}/${call.key}`;
      const effects = stage.ledger.effects(operation).filter(({ isZombie }) => !isZombie).length;
      const rows = database.toolRows.filter(({ operationId }) => operationId === operation).length;
      const about = `${call.name} ${operation} (${call.policy})`;
      if (call.completed && call.name !== 'ask_user')
        world.require(stage.ledger.hasReturned(operation, call.output), 'ledger', `${about} never returned its result`);
      if (call.policy === 'probe') world.require(effects <= 1, 'ledger', `${about} took effect ${effects} times`);
      if (call.policy === 'transactional')
        world.require(
          rows === (call.completed ? 1 : 0),
          'ledger',
          `${about} has ${rows} rows, and ${call.completed ? 'a' : 'no'} result`,
        );
    }
  }

  /** A fresh fold by the engine's own rules agrees with each row. */
  private async assertJournals(): Promise<void> {
    const view = new TablesView(this.database);
    for (const runId of this.database.tables.runs.keys()) {
      try {
        await assertSound(view, runId);
      } catch (error) {
        this.world.violate('sound', `run ${runId}: ${(error as Error).message}`);
      }
    }
  }
}

function responseOf(kind: Interaction['kind'], chance: number, by: string): InteractionResponse {
  if (kind === 'question')
    return chance < 0.8 ? { action: 'accept', answers: { q: by, size: by }, by } : { action: 'decline', by };
  if (chance < 0.2) return { decision: 'deny', by };
  return chance < 0.4 ? { decision: 'approve', arguments: { n: 7 }, by } : { decision: 'approve', by };
}

class TablesView extends MemoryRunStore {
  constructor({ tables, world }: SimDatabase) {
    super({ clock: () => EPOCH + world.time });
    this.tables = tables;
  }
}

class Catalog implements AgentCatalog {
  constructor(private readonly agents: readonly AgentDefinition[]) {}

  all(): readonly AgentDefinition[] {
    return this.agents;
  }

  find(name: unknown): AgentDefinition | undefined {
    return this.agents.find((agent) => agent.name === name);
  }

  offers(): readonly Offer[] {
    return this.agents.map(({ name, version }) => ({ agent: name, version, hash: null }));
  }
}
