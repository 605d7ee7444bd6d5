import type { InterruptedToolCall } from '../contracts/ports/tool-caller.port.js';
import { RECOVERY_POLICIES, type RecoveryPolicy } from '../contracts/policies.js';
import type { ToolDefinition } from '../contracts/agent-definition.js';
import { formatValue, readOptions } from '../contracts/read-options.js';
import { anything, duration, type Field, field, type Given, object, oneOf } from '../contracts/schema.js';
import type { AgentToolOptions } from '../decorators/agent-tool.options.js';
import { NestToolCaller } from '../tools/nest-tool-caller.js';
import { compileToolSchema } from '../tools/schema/compile-tool-schema.js';
import type { ToolSchema } from '../tools/schema/tool-schema.js';
import type { ToolEnhancerResolver, ToolEnhancers } from '../tools/tool-enhancers.js';
import { methodOf, placeOf, prepareParameters, type ToolHost, type ToolParameters } from '../tools/tool-host.js';
import { type PipelineCreators, ToolPipeline } from '../tools/tool-pipeline.js';
import { readDefaults } from './agent-options.js';
import { compareVersions, isDottedVersion } from './dotted-version.js';
import type { ProblemList } from './problem-list.js';
import { type RegisteredTool, toolIdentity, type ToolCatalog } from './tool-catalog.js';
import type { Exploration, ExploredProbe, ExploredTool } from './registration.explorer.js';
import type { RegistrationSettings } from './registration-settings.js';

export interface ToolBuilding {
  settings: RegistrationSettings;
  enhancers: ToolEnhancerResolver;
  creators: PipelineCreators;
  problems: ProblemList;
}

type HostTool = RegisteredTool & { host: ToolHost };

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** What is not read here has problems with words of their own. */
const TOOL = object({
  name: anything(),
  version: anything(),
  description: anything(),
  input: anything(),
  inputSchema: anything(),
  output: anything(),
  recovery: oneOf(RECOVERY_POLICIES),
  approval: field<AgentToolOptions['approval']>('a boolean or a function', (value) =>
    ['boolean', 'function'].includes(typeof value),
  ),
  timeout: duration,
  transactionTimeout: duration,
} satisfies Record<keyof AgentToolOptions, Field<unknown>>);
type ReadTool = Given<typeof TOOL.fields>;

const DEFAULT_TRANSACTION_TIMEOUT_MS = 5_000;

/** From what the explorer found to tool definitions; everything wrong with them becomes a problem. */
export async function buildTools(found: Exploration, building: ToolBuilding): Promise<ToolCatalog> {
  const probes = new ProbeIndex(found, building.problems);
  const tools: HostTool[] = [];
  const broken = [...found.refused];
  for (const explored of found.tools) {
    const tool = await buildTool(explored, probes, building);
    if (tool === undefined) {
      broken.push({ classRef: explored.host.classRef, name: explored.options?.name });
    } else {
      refuseDuplicate(tool, tools, building.problems);
      tools.push(tool);
    }
  }
  const builtIn = building.settings.builtInTools.map((definition) => ({ host: null, definition }));
  return { tools: [...tools, ...builtIn], broken };
}

async function buildTool(
  { host, options }: ExploredTool,
  probes: ProbeIndex,
  building: ToolBuilding,
): Promise<HostTool | undefined> {
  const { problems } = building;
  if (
    typeof options !== 'object' ||
    options === null ||
    typeof options.name !== 'string' ||
    !TOOL_NAME.test(options.name)
  ) {
    problems.add(
      `${placeOf(host)}: the tool name ${formatValue((options as Partial<AgentToolOptions> | undefined)?.name)} is not allowed. Use 1-64 characters of A-Z a-z 0-9 _ -; providers accept no others.`,
    );
    return undefined;
  }
  if (building.settings.builtInTools.some(({ name }) => name === options.name)) {
    problems.add(`${placeOf(host)}: the name '${options.name}' belongs to a built-in tool. Give the tool another one.`);
    return undefined;
  }
  const version = options.version ?? '1';
  const subject = `Tool ${options.name} (${placeOf(host)})`;
  if (!isDottedVersion(version)) {
    problems.add(
      `${subject}: version ${formatValue(version)} is not allowed. Use dotted integers such as '1' or '2.10'.`,
    );
    return undefined;
  }
  const read = readOptions(TOOL, options, { subject }, problems);
  if (typeof options.description !== 'string' || options.description.trim() === '') {
    problems.add(`${subject} has no description. The model knows the tool by it only.`);
  }
  const { recovery = 'manual' } = read;
  checkRecovery(recovery, options.name, probes.of(options.name, version) !== undefined, subject, building);
  const schemas = await compileSchemas(options, `${options.name}@${version}`, subject, problems);
  const pipeline = await buildPipeline(host, options, recovery, subject, building);
  const times = checkTimes(read, recovery, subject, building);
  if (schemas === undefined || pipeline === undefined) return undefined;
  const definition: ToolDefinition = {
    name: options.name,
    version,
    description: options.description,
    inputSchema: schemas.input.jsonSchema,
    outputSchema: schemas.output?.jsonSchema ?? null,
    recovery,
    approval: options.approval === undefined || options.approval === false ? 'none' : 'rule',
    ...times,
    caller: new NestToolCaller({
      ...schemas,
      pipeline,
      approval: options.approval,
      clock: building.settings.clock,
      probe: probes.of(options.name, version),
    }),
  };
  return { host, definition };
}

function checkRecovery(
  recovery: RecoveryPolicy,
  name: string,
  hasProbe: boolean,
  subject: string,
  { problems, settings }: ToolBuilding,
): void {
  if (recovery === 'probe' && !hasProbe) {
    problems.add(`${subject} has recovery 'probe' but no @RecoverTool('${name}') method on any provider.`);
  }
  if (recovery === 'transactional' && !settings.store.transactions) {
    problems.add(
      `${subject} has recovery 'transactional', but the store ${settings.store.name} has no transactions. Import AgentRunsTypeOrmModule.forRoot() from nestjs-agent-runs/typeorm; in a test, AgentRunsMemoryModule.forRoot({ manager }) from nestjs-agent-runs/testing.`,
    );
  }
}

async function compileSchemas(
  options: AgentToolOptions,
  identity: string,
  subject: string,
  problems: ProblemList,
): Promise<{ input: ToolSchema; output: ToolSchema | null } | undefined> {
  if (options.input === undefined || options.input === null) {
    problems.add(
      `${subject} has no input schema. Give a class, a Standard Schema or a JSON Schema; {} for a tool without arguments.`,
    );
    return undefined;
  }
  const input = await problems.attemptAsync(() =>
    compileToolSchema({
      source: options.input,
      side: 'input',
      override: options.inputSchema,
      what: `The input of tool ${identity}`,
    }),
  );
  const source = options.output;
  if (source === undefined || source === null) return input && { input, output: null };
  const output = await problems.attemptAsync(() =>
    compileToolSchema({ source, side: 'output', what: `The output of tool ${identity}` }),
  );
  return input && output && { input, output };
}

async function buildPipeline(
  host: ToolHost,
  options: AgentToolOptions,
  recovery: RecoveryPolicy,
  subject: string,
  { enhancers, creators, problems }: ToolBuilding,
): Promise<ToolPipeline | undefined> {
  if (/Generator/.test(Object.prototype.toString.call(methodOf(host)))) {
    problems.add(`${subject} is a generator. A tool gives one result: return a value, a promise or an Observable.`);
  }
  const parameters = prepareParameters(host);
  const resolved = await problems.attemptAsync(() => enhancers.resolve(host));
  if (parameters.foreign.length > 0) {
    problems.add(
      `${subject}: parameter ${parameters.foreign.map((index) => index + 1).join(', ')} has a decorator of HTTP routes, which means nothing in a tool. A tool gets (input, context).`,
    );
  }
  if (resolved === undefined) return undefined;
  refusePipesBehindApproval(options, resolved, parameters, subject, problems);
  const mayReenter = recovery === 'safe' || recovery === 'idempotent';
  return new ToolPipeline(host, resolved, parameters, creators, mayReenter);
}

/** An approver has seen, and the digest covers, what leaves the schema; a pipe would change it afterwards. */
function refusePipesBehindApproval(
  { approval }: AgentToolOptions,
  { has }: ToolEnhancers,
  { pipes }: ToolParameters,
  subject: string,
  problems: ProblemList,
): void {
  if (approval === undefined || approval === false || (!has.pipes && pipes.length === 0)) return;
  problems.add(
    `${subject} has approval and a pipe on its class, method or a parameter. What is approved must be what is executed: move the pipe's work into the input schema.`,
  );
}

function checkTimes(
  options: ReadTool,
  recovery: RecoveryPolicy,
  subject: string,
  { settings, problems }: ToolBuilding,
): Pick<ToolDefinition, 'timeoutMs' | 'transactionTimeoutMs'> {
  const most = Math.floor(settings.leaseMs / 3);
  const { transactionTimeout: transactionTimeoutMs = Math.min(DEFAULT_TRANSACTION_TIMEOUT_MS, most) } = options;
  if (options.transactionTimeout !== undefined && recovery !== 'transactional') {
    problems.add(`${subject}: transactionTimeout is only for recovery 'transactional'.`);
  } else if (transactionTimeoutMs > most) {
    problems.add(
      `${subject}: transactionTimeout is ${transactionTimeoutMs} ms, more than a third of the lease (${most} ms).`,
    );
  }
  const timeoutMs = options.timeout ?? readDefaults(settings.defaults, problems).toolTimeout ?? null;
  return { timeoutMs, transactionTimeoutMs };
}

function refuseDuplicate(tool: HostTool, others: readonly HostTool[], problems: ProblemList): void {
  const { name, version } = tool.definition;
  const twin = others.find(
    (other) => other.definition.name === name && compareVersions(other.definition.version, version) === 0,
  );
  if (twin === undefined) return;
  problems.add(
    `Tool ${toolIdentity(tool.definition)} is registered twice: ${placeOf(twin.host)} and ${placeOf(tool.host)}. Give one of them another name or version.`,
  );
}

/** The `@RecoverTool` methods by what they name. */
class ProbeIndex {
  private readonly byName = new Map<string, ExploredProbe>();

  constructor({ probes, tools, refused }: Exploration, problems: ProblemList) {
    const known = new Set([
      ...tools.flatMap(({ options }) => [options?.name, `${options?.name}@${options?.version ?? '1'}`]),
      ...refused.map(({ name }) => name),
    ]);
    for (const probe of probes) {
      const twin = this.byName.get(probe.tool);
      if (twin !== undefined) {
        problems.add(
          `Two methods are @RecoverTool('${probe.tool}'): ${placeOf(twin.host)} and ${placeOf(probe.host)}.`,
        );
      }
      if (!known.has(probe.tool)) {
        const names = [...new Set(tools.map(({ options }) => options?.name))].join(', ') || 'none';
        problems.add(
          `${placeOf(probe.host)} is @RecoverTool('${probe.tool}'), but there is no such tool. Registered tools: ${names}.`,
        );
      }
      this.byName.set(probe.tool, probe);
    }
  }

  of(name: string, version: string): ((call: InterruptedToolCall) => unknown) | undefined {
    const probe = this.byName.get(`${name}@${version}`) ?? this.byName.get(name);
    if (probe === undefined) return undefined;
    const { host } = probe;
    return (call) => (methodOf(host) as (call: InterruptedToolCall) => unknown).call(host.instance, call);
  }
}
