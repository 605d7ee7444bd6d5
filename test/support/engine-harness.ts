// An engine without Nest: any store, a scripted model, tools as plain functions. Each `engineOver` is a fresh application over the same store.
import type { AgentCatalog, AgentDefinition, Offer, ToolDefinition } from '../../lib/contracts/agent-definition.js';
import type { JsonObject, JsonValue } from '../../lib/contracts/json.js';
import type { ApprovalVerdict } from '../../lib/contracts/journal-entry.js';
import type { Clock } from '../../lib/contracts/ports/system.port.js';
import type { ModelClient } from '../../lib/contracts/ports/model-client.port.js';
import type { LifecycleEvent } from '../../lib/contracts/ports/host.port.js';
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import type {
  InterruptedToolCall,
  ParsedArguments,
  ProbeResult,
  ToolContext,
} from '../../lib/contracts/ports/tool-caller.port.js';
import { DEFAULT_RETRY_POLICY } from '../../lib/contracts/policies.js';
import { createEngine, type Engine } from '../../lib/engine/engine.js';
import { DEFAULT_ENGINE_OPTIONS, type EngineOptions, type EnginePorts } from '../../lib/engine/engine-ports.js';
import { AsyncRunScope, Sha256Digester, SystemClock, SystemIdSource } from '../../lib/system/system-ports.js';

export interface ToolOptions extends Partial<Omit<ToolDefinition, 'name' | 'caller'>> {
  parse?: (args: JsonObject) => ParsedArguments;
  probe?: (call: InterruptedToolCall) => ProbeResult | Promise<ProbeResult>;
  approval?: ToolDefinition['approval'];
  /** The approval rule; `approval` is 'rule' with it. */
  asks?: (
    input: JsonObject,
    call: Parameters<ToolDefinition['caller']['approval']>[1],
  ) => ApprovalVerdict | null | Promise<ApprovalVerdict | null>;
  checkOutput?: (output: JsonValue) => string[];
}

export function tool(
  name: string,
  run: (input: JsonObject, context: ToolContext) => unknown,
  options: ToolOptions = {},
): ToolDefinition {
  const { parse, probe, asks, checkOutput, ...rest } = options;
  return {
    name,
    version: '1',
    description: `does ${name}`,
    inputSchema: { type: 'object' },
    outputSchema: null,
    recovery: 'safe',
    approval: asks ? 'rule' : 'none',
    timeoutMs: null,
    transactionTimeoutMs: 5_000,
    ...rest,
    caller: {
      parse: (args) => Promise.resolve(parse ? parse(args) : { ok: true, input: args }),
      approval: async (input, call) => (asks ? asks(input, call) : null),
      call: async (input, context, entry) => {
        const addition = await entry.onEnter();
        return run(input, { ...context, ...addition });
      },
      ...(probe && { probe: async (call: InterruptedToolCall) => probe(call) }),
      checkOutput: (output) => checkOutput?.(output) ?? [],
    },
  };
}

export function agent(
  model: ModelClient,
  tools: ToolDefinition[] = [],
  options: Partial<AgentDefinition> = {},
): AgentDefinition {
  return {
    name: 'support',
    version: '1',
    hash: 'hash-1',
    instructions: 'Help.',
    modelName: 'default',
    model,
    tools,
    maxTurns: 20,
    modelRetry: { ...DEFAULT_RETRY_POLICY, initialDelayMs: 1 },
    toolConcurrency: 8,
    modelTimeoutMs: 60_000,
    maxDurationMs: null,
    sessionMode: 'serial',
    definitionChange: 'block',
    truncatedCalls: 'fail',
    allowEmptyAnswer: false,
    approvalMode: 'ask',
    ...options,
  };
}

class FixedCatalog implements AgentCatalog {
  constructor(private readonly agents: readonly AgentDefinition[]) {}

  all(): readonly AgentDefinition[] {
    return this.agents;
  }

  find(name: unknown, version?: string): AgentDefinition | undefined {
    const named = this.agents.filter((candidate) => candidate.name === name);
    return version === undefined ? named.at(-1) : named.find((candidate) => candidate.version === version);
  }

  offers(): readonly Offer[] {
    return this.agents.map(({ name, version, hash, definitionChange }) => ({
      agent: name,
      version,
      hash: definitionChange === 'accept' ? null : hash,
    }));
  }
}

export interface TestEngine extends Engine {
  /** Everything observers were told. */
  told: LifecycleEvent[];
  /** What was logged, by level. */
  logged: { level: string; message: string; fields: Record<string, unknown> }[];
  stop(): Promise<void>;
  /** As if its process were gone: nobody stops it any more. For engines over a store that was killed. */
  forget(): void;
}

const running = new Set<TestEngine>();

export async function engineOver(
  store: RunStore,
  agents: AgentDefinition | AgentDefinition[],
  options: Partial<EngineOptions> = {},
  clock: Clock = new SystemClock(),
  ports: Partial<EnginePorts> = {},
): Promise<TestEngine> {
  const told: LifecycleEvent[] = [];
  const logged: TestEngine['logged'] = [];
  const log =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void logged.push({ level, message, fields });
  const engine = createEngine({
    store,
    catalog: new FixedCatalog([agents].flat()),
    clock,
    ids: new SystemIdSource(),
    digester: new Sha256Digester(),
    scope: new AsyncRunScope(),
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    guardrail: null,
    approvalResolver: null,
    beforeStart: null,
    observers: [{ onEvent: (event) => void told.push(event) }],
    options: { ...DEFAULT_ENGINE_OPTIONS, pollMs: 20, pollIdleMs: 20, shutdownTimeoutMs: 2_000, ...options },
    ...ports,
  });
  await engine.worker.start();
  const test: TestEngine = {
    ...engine,
    told,
    logged,
    stop: async () => {
      running.delete(test);
      await engine.worker.drain();
    },
    forget: () => void running.delete(test),
  };
  running.add(test);
  return test;
}

/** For `afterEach`: no engine outlives its test. */
export async function stopEngines(): Promise<void> {
  await Promise.all([...running].map((engine) => engine.stop()));
}

/** Types of a run's journal, in order. */
export async function entryTypes(engine: Engine, runId: string): Promise<string[]> {
  return (await engine.runs.events(runId)).events.map(({ type }) => type);
}
