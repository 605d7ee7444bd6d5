/**
 * The way into the host's tool method. The implementation runs the host's guards, pipes, interceptors and filters; the engine decides when, how often
 * and under which key.
 */
import type { Actor } from '../actor.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { ApprovalVerdict } from '../journal-entry.js';

/** What a tool method gets beside its arguments (JRN-6). */
export interface ToolContext {
  runId: string;
  sessionId: string | null;
  agent: string;
  /** `<runId>/<key>`: the same over retries, resumes and attempts; give it to the far side as idempotency key. */
  operationId: string;
  /** Id of the call in the transcript. */
  callId: string;
  /** 1 for the first execution. */
  attempt: number;
  /** Aborted on cancel, timeout, lost lease and shutdown. */
  signal: AbortSignal;
  /** Epoch ms at which the call times out; null = never. */
  deadline: number | null;
  /** Who the run works for, as given to `start`. */
  actor: Actor | null;
  /** The transaction of a `transactional` tool (an `EntityManager` under `./typeorm`); throws once the method has settled. Undefined for other tools. */
  manager?: unknown;
}

/** Hands the method its context at the moment it is entered: guards and pipes have passed. */
export interface ToolEntry {
  /** Called right before the method runs; may add to the context (a transaction). Not called when a guard or pipe refused. */
  onEnter(): Promise<Pick<ToolContext, 'manager'> | void>;
}

export type ParsedArguments = { ok: true; input: JsonObject } | { ok: false; problems: string[] };

export interface InterruptedToolCall {
  runId: string;
  operationId: string;
  arguments: JsonObject;
  attempt: number;
  actor: Actor | null;
  signal: AbortSignal;
}

export type ProbeResult =
  { result: 'happened'; output: unknown } | { result: 'did-not-happen' } | { result: 'unknown' };

export interface ToolCaller {
  /** Validates and coerces; pure and stable. Never throws for bad arguments. */
  parse(args: JsonObject): Promise<ParsedArguments>;
  /** Whether a person must decide; called once per call with a frozen copy. Null = no. A throw asks. */
  approval(
    input: JsonObject,
    call: { runId: string; callId: string; actor: Actor | null },
  ): Promise<ApprovalVerdict | null>;
  /**
   * Runs the method with the host's enhancers.
   * @throws ToolDeniedError when a guard refused, InvalidToolArgumentsError when a pipe refused, else whatever the method threw
   */
  call(input: JsonObject, context: ToolContext, entry: ToolEntry): Promise<unknown>;
  /** The `@RecoverTool` method; undefined where there is none. */
  probe?(call: InterruptedToolCall): Promise<ProbeResult>;
  /** Checks a result that a person or a probe gave; the problems, empty when it fits. */
  checkOutput(output: JsonValue): string[];
}
