// Who acts in a history: agents, a model that does what providers may do, and tools of every recovery policy that hang, fail, succeed, and lose their answers.
// What each does depends on the seed and on what it is asked, not on when.
import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import type { JsonObject } from '../../lib/contracts/json.js';
import type {
  ModelClient,
  ModelReply,
  ModelReplyPart,
  ModelRequest,
} from '../../lib/contracts/ports/model-client.port.js';
import type { ProbeResult, ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import type { RecoveryPolicy } from '../../lib/contracts/policies.js';
import type { ToolDefinition } from '../../lib/contracts/agent-definition.js';
import { askUserTool } from '../../lib/engine/ask-user-tool.js';
import { ModelCallError } from '../../lib/errors/run.errors.js';
import { problemsOf } from '../../lib/model/scripted/transcript-problems.js';
import { agent, tool, type ToolOptions } from '../support/engine-harness.js';
import { stricterOf, type Invariants } from './invariants.js';
import type { Ledger } from './ledger.js';
import type { SimDatabase } from './sim-database.js';
import type { SimProcess } from './sim-process.js';
import type { SimManager } from './sim-store.js';
import { LEASE_MS } from './plan.js';
import type { World } from './world.js';

export interface Stage {
  world: World;
  database: SimDatabase;
  ledger: Ledger;
  invariants: Invariants;
  /** Requests that each model call of a task was asked with. */
  requests: Map<string, number>;
}

const TOOL_NAMES = ['lookup', 'charge', 'pay', 'mail', 'ship', 'book', 'refund', 'survey', 'ask_user'] as const;
const TOOL_TIMEOUT_MS = 1_000;

/** The prompt of a task; the model finds by it where it is. */
export function promptOf(task: string, turns: number): string {
  return `task ${task} turns ${turns}`;
}

export function agentsOf(stage: Stage, process: SimProcess, isLax: boolean, workerId: () => string): AgentDefinition[] {
  const model = modelOf(stage, process, workerId);
  const tools = toolsOf(stage, process, isLax, workerId);
  return (['serial', 'parallel'] as const).map((sessionMode) =>
    agent(model, tools, {
      name: sessionMode,
      sessionMode,
      hash: isLax ? 'lax' : 'strict',
      definitionChange: 'accept',
      modelRetry: { maxAttempts: 3, initialDelayMs: 100, maxDelayMs: 1_000, maxRetryAfterMs: 2_000 },
      modelTimeoutMs: 1_500,
      toolConcurrency: 3,
      maxTurns: 8,
      truncatedCalls: 'feedback',
    }),
  );
}

// ---- the model ----

function modelOf(stage: Stage, process: SimProcess, workerId: () => string): ModelClient {
  return {
    name: 'simulated',
    async generate({ messages, signal }: ModelRequest): Promise<ModelReply> {
      const { world } = stage;
      const place = messages.findLastIndex(
        (message) => message.role === 'user' && textOf(message.content).startsWith('task '),
      );
      const [, task = '', , turns = '1'] = textOf(messages[place]?.content ?? []).split(' ');
      const said = messages.slice(place).filter(({ role }) => role === 'assistant').length;
      const question = `model/${task}/${said}`;
      const asked = (stage.requests.get(question) ?? 0) + 1;
      stage.requests.set(question, asked);
      checkModel(stage, task, workerId(), messages);
      const fault = await process.call('model', `model ${question} #${asked}`);
      if (fault?.fault === 'lost' || fault?.fault === 'conflict') throw unreachable();
      const chance = world.chanceOf(`${question}/${asked}`);
      await process.sleep(fault?.fault === 'late' ? fault.ms : chance < 0.03 ? 2_500 : 20 + Math.floor(200 * chance));
      if (fault?.fault === 'killed after') process.kill();
      if (fault?.fault === 'stopped after') process.stop(fault.ms);
      await process.sleep(0);
      if (fault?.fault === 'answer lost') throw unreachable();
      if (signal.aborted && chance < 0.5) throw new Error('aborted');
      if (chance > 0.97)
        throw new ModelCallError('The simulated provider is overloaded.', { retryable: true, status: 503 });
      if (chance > 0.96)
        throw new ModelCallError('Come back later.', { retryable: true, status: 429, retryAfterMs: 1_300 });
      if (chance > 0.95) throw new ModelCallError('The simulated provider refuses.', { retryable: false, status: 400 });
      if (chance > 0.94) return reply([{ type: 'text', text: 'cut' }], 'error', chance);
      if (chance > 0.93) return reply(callsOf(world, question), 'length', chance);
      if (chance > 0.91) return reply([{ type: 'text', text: 'more to come' }], 'pause', chance);
      return said >= Number(turns) || said > 6
        ? reply([{ type: 'text', text: `done ${task}` }], 'stop', chance)
        : reply(callsOf(world, question), 'tool-calls', chance);
    },
  };
}

function unreachable(): ModelCallError {
  return new ModelCallError('The simulated provider did not answer.', { retryable: true });
}

function reply(content: ModelReplyPart[], finishReason: ModelReply['finishReason'], chance: number): ModelReply {
  // A provider may forget to tell what it cost.
  const usage = chance > 0.45 && chance < 0.46 ? {} : { inputTokens: 10, outputTokens: 1 + Math.floor(chance * 20) };
  return { content, finishReason, usage };
}

function callsOf(world: World, question: string): ModelReplyPart[] {
  const count = 1 + Math.floor(world.chanceOf(`${question}/count`) * 3);
  return Array.from({ length: count }, (_, index): ModelReplyPart => {
    const chance = world.chanceOf(`${question}/call/${index}`);
    const name = TOOL_NAMES[Math.floor(chance * TOOL_NAMES.length)] as string;
    const odd = world.chanceOf(`${question}/odd/${index}`);
    const args = name === 'ask_user' ? { questions: [{ id: 'q', text: 'Which?' }] } : { n: index };
    return {
      type: 'tool-call',
      callId: odd < 0.03 ? '' : odd < 0.06 ? 'same' : `${question.replaceAll('/', '-')}-${index}`,
      name: odd > 0.98 ? 'unknown' : name,
      argumentsText: odd > 0.96 && odd < 0.98 ? '{"n":' : JSON.stringify(args),
    };
  });
}

/** I1 and I5, from the provider's side. */
function checkModel(stage: Stage, task: string, workerId: string, messages: ModelRequest['messages']): void {
  const { world, database, invariants } = stage;
  const run = runOfTask(database, task);
  if (!run) return world.violate('I1', `the model is asked for task ${task}, whose run was never committed`);
  for (const problem of problemsOf(messages, ['results', 'ids'])) world.violate('I5', `run ${run.id}: ${problem}`);
  if (run.status !== 'running') return;
  const { model, types } = invariants.of(run.id);
  // Taken from a live owner that has committed its intent and learns of it too late.
  const isTaken = types.includes('run.takeover_requested');
  world.require(model !== null || isTaken, 'I1', `the model is asked for run ${run.id} without an intent`);
  checkOwner(stage, run.id, workerId, 'a model call');
}

/** What is begun is begun by the owner of the run, while its lease lasts. A run that somebody else has just stopped may not be known as stopped yet. */
function checkOwner({ world, database, invariants }: Stage, runId: string, workerId: string, what: string): void {
  const run = database.tables.runs.get(runId);
  // Taken from a live owner because a caller swore that it was gone: it may learn of it too late.
  if (run?.status !== 'running' || invariants.of(runId).types.includes('run.takeover_requested')) return;
  const left = (database.tables.workers.get(run.owner ?? '')?.leaseExpiresAt ?? 0) - database.now();
  world.require(run.owner === workerId, 'I12', `${workerId} begins ${what} of run ${runId}, which ${run.owner} owns`);
  world.require(left > 0, 'I12', `${workerId} begins ${what} of run ${runId} ${-left} ms after its lease ended`);
}

export function runOfTask(database: SimDatabase, task: string) {
  for (const run of database.tables.runs.values()) if (run.requestId === task) return run;
  return undefined;
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as { text?: string }[]).map(({ text = '' }) => text).join('');
}

// ---- the tools ----

function toolsOf(stage: Stage, process: SimProcess, isLax: boolean, workerId: () => string): ToolDefinition[] {
  const plain = (name: string, recovery: RecoveryPolicy, options: ToolOptions = {}): ToolDefinition =>
    tool(name, (input, context) => work(stage, process, { name, recovery, workerId }, input, context), {
      recovery,
      timeoutMs: TOOL_TIMEOUT_MS,
      transactionTimeoutMs: TOOL_TIMEOUT_MS,
      ...options,
    });
  return [
    plain('lookup', 'safe'),
    plain('charge', 'idempotent'),
    plain('pay', isLax ? 'safe' : 'manual'),
    plain('mail', 'inform'),
    plain('ship', 'probe', { probe: ({ operationId }) => probe(stage, process, operationId) }),
    plain('book', 'transactional'),
    plain('refund', 'manual', { asks: () => ({ reason: 'money', expiresInMs: 3_000 }) }),
    plain('survey', 'safe'),
    askUserTool(),
  ];
}

interface Method {
  name: string;
  recovery: RecoveryPolicy;
  workerId: () => string;
}

async function work(
  stage: Stage,
  process: SimProcess,
  method: Method,
  input: JsonObject,
  context: ToolContext,
): Promise<unknown> {
  const { world, ledger } = stage;
  const { operationId } = context;
  const begunAt = world.time;
  checkEntry(stage, method, context);
  const before = ledger.enter(operationId);
  const chance = world.chanceOf(`tool/${operationId}/${before}`);
  const fault = await process.call('tool', `tool ${method.name} ${operationId} #${context.attempt}`);
  if (fault?.fault === 'lost') throw new Error('the far side did not answer');
  if (chance < 0.05) throw new Error('the far side refuses');
  if (chance < 0.08) await process.sleep(60_000);
  await process.sleep(fault?.fault === 'late' ? fault.ms : chance < 0.14 ? 900 : 10 + Math.floor(300 * chance));
  if (context.signal.aborted && chance < 0.5) throw new Error('aborted');
  if (method.name === 'survey') {
    await context.step('prepare', () => ledger.enter(`${operationId}/prepare`), { recovery: 'safe' });
    const answers = await context.ask({ id: 'size', text: 'How many?' });
    return returned(stage, operationId, { answers });
  }
  await effect(stage, process, method, context, begunAt);
  if (fault?.fault === 'killed after') process.kill();
  if (fault?.fault === 'stopped after') process.stop(fault.ms);
  await process.sleep(1);
  if (fault?.fault === 'answer lost' || chance > 0.97) throw new Error('the answer of the far side was lost');
  if (chance > 0.95) await process.sleep(60_000);
  return returned(stage, operationId, { did: method.name, n: input['n'] ?? null });
}

function returned(stage: Stage, operationId: string, output: JsonObject): JsonObject {
  stage.ledger.return(operationId, output);
  return output;
}

/** The request is on its way: it takes effect whatever becomes of the process, or with the transaction. */
async function effect(
  stage: Stage,
  process: SimProcess,
  method: Method,
  context: ToolContext,
  begunAt: number,
): Promise<void> {
  const { operationId, runId, attempt } = context;
  if (method.recovery === 'transactional') {
    (context as unknown as { manager: SimManager }).manager.insert({ operationId, attempt });
    return;
  }
  const { world, ledger, database, invariants } = stage;
  await new Promise<void>((resolve) => {
    world.after(3, () => {
      const run = database.tables.runs.get(runId);
      const lease = database.tables.workers.get(run?.owner ?? '')?.leaseExpiresAt ?? 0;
      const call = invariants.of(runId).calls.get(operationId.slice(runId.length + 1));
      const isCurrent = call?.state === 'started' && call.attempt === attempt;
      const isOwner =
        isCurrent && run?.status === 'running' && run.owner === method.workerId() && lease > database.now();
      // Nobody waits longer for a method that goes on after its time limit.
      const isWaitedFor = world.time - begunAt <= TOOL_TIMEOUT_MS + LEASE_MS;
      const isZombie = !isOwner || !isWaitedFor;
      ledger.effect(operationId, isZombie);
      world.note(`effect of ${method.name} ${operationId}${isZombie ? ' (zombie)' : ''}`);
      process.later(2, resolve);
    });
  });
}

async function probe({ world, ledger }: Stage, process: SimProcess, operationId: string): Promise<ProbeResult> {
  await process.call('tool', `probe ${operationId}`);
  await process.sleep(20);
  if (world.chanceOf(`probe/${operationId}`) < 0.1) return { result: 'unknown' };
  return ledger.effects(operationId).length > 0
    ? { result: 'happened', output: { did: 'ship' } }
    : { result: 'did-not-happen' };
}

/** I1, I8, I12, and the tool's recovery policy, at the moment the method is entered. */
function checkEntry(stage: Stage, method: Method, { runId, operationId, attempt }: ToolContext): void {
  const { world, ledger, invariants } = stage;
  const call = invariants.of(runId).calls.get(operationId.slice(runId.length + 1));
  const entry = `execution ${attempt} of ${method.name} ${operationId}`;
  if (!call || call.state === 'ready' || call.state === 'gated' || call.attempt < attempt)
    return world.violate('I1', `${entry} has no intent: the call is ${call?.state}, its last intent ${call?.attempt}`);
  checkOwner(stage, runId, method.workerId(), entry);
  const policy = stricterOf(call.policy ?? method.recovery, method.recovery);
  const before = ledger.entries(operationId);
  const isOnce = policy === 'manual' || policy === 'inform';
  world.require(
    !isOnce || before <= call.excused,
    'ledger',
    `${entry} begins a ${policy} call that was begun ${before} times before`,
  );
}
