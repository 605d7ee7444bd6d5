import type { Actor } from '../run.js';
import type { Question } from '../interaction.js';
import type { JsonObject, JsonOf, JsonValue } from '../json.js';
import type { RecoveryPolicy } from '../policies.js';
import type { ApprovalVerdict } from '../journal-entry.js';

/** What a tool method gets beside its arguments. */
export interface ToolContext {
  /** Id of the run. */
  runId: string;
  /** Id of the run's session; null = it has none. */
  sessionId: string | null;
  /** Name of the agent that calls. */
  agent: string;
  /** `<runId>/<key>`: the same over retries, resumes and attempts; give it to the far side as idempotency key. */
  operationId: string;
  /** Id of the call in the transcript. */
  callId: string;
  /** 1 for the first execution. */
  attempt: number;
  /** Aborted on cancel, timeout, lost lease and shutdown. */
  signal: AbortSignal;
  /** When the call times out; null = never. */
  deadline: Date | null;
  /** Who the run works for, as given to `start`. */
  actor: Actor | null;
  /**
   * Asks a person in the middle of the work. The method is left (a signal is thrown) and entered again from its
   * beginning once answered; answers already given are returned at once, in order. What must not be done twice goes
   * into `step` before it.
   * @returns one answer per question id
   * @throws QuestionNotAnsweredError when declined, cancelled or expired
   */
  ask(questions: Question | readonly Question[]): Promise<JsonObject>;
  /** Asks a person to approve; otherwise as `ask`. @throws ApprovalDeniedError when denied or expired */
  requestApproval(request: ApprovalRequest): Promise<ApprovalGiven>;
  /**
   * Work that is journaled by its key and not repeated when the method is entered again: its result is returned from
   * the journal instead.
   * @param options `recovery`: what to do about an interrupted step; default the tool's policy. Only `safe` and
   * `idempotent` steps are repeated.
   * @returns what `work` returned in its JSON form, the first time too
   */
  step<T>(key: string, work: () => T | Promise<T>, options?: { recovery?: StepRecovery }): Promise<JsonOf<T>>;
}

/** What may be done about a step that was interrupted. See {@link RecoveryPolicy}. */
export type StepRecovery = Extract<RecoveryPolicy, 'manual' | 'idempotent' | 'safe'>;

/** What a tool asks a person to approve. */
export interface ApprovalRequest {
  /** What is to be approved and why, shown to the person. */
  reason: string;
  /** What may go wrong, shown to the person. */
  risk?: string;
  /** The role whose holders may decide; absent = anybody. */
  approverRole?: string;
  /** What is to be approved, shown to the person and bound to the decision. */
  arguments?: JsonObject;
  /** Ms; null = never expires; default the option `approvalExpires`. */
  expiresInMs?: number | null;
}

/** The approval of a person. */
export interface ApprovalGiven {
  /** Who approved. */
  by: string;
  /** What they said with it. */
  note?: string;
  /** As edited by the person, where they were. */
  arguments?: JsonObject;
}

/** The transaction of a `transactional` tool, as `context.manager`; it throws once the method has settled. */
export interface EnteredTransaction {
  manager: unknown;
}

/** What a method's context gets at the moment it is entered. */
export interface EnteredContext extends Partial<EnteredTransaction> {
  /** The method's time begins now. */
  deadline?: Date;
}

/** Hands the method its context at the moment it is entered: guards and pipes have passed. */
export interface ToolEntry {
  /** The arguments as they were given, before the schema read them; default the input. */
  given?: JsonObject;
  /**
   * Called right before the method runs; may add to the context (a transaction). Not called when a guard or pipe
   * refused.
   */
  onEnter(): Promise<EnteredContext | void>;
}

export type ParsedArguments = { ok: true; input: JsonObject } | { ok: false; problems: string[] };

/** A call that was interrupted, for the `@RecoverTool` method that finds out whether it happened. */
export interface InterruptedToolCall {
  /** Id of the run. */
  runId: string;
  /** `<runId>/<key>`, the one the interrupted call had as well. */
  operationId: string;
  /** As they were executed. */
  arguments: JsonObject;
  /** The execution that was interrupted, from 1. */
  attempt: number;
  /** Who the run works for, as given to `start`; null = nobody was named. */
  actor: Actor | null;
  /** Aborted on cancel, timeout, lost lease and shutdown. */
  signal: AbortSignal;
}

/** What a `@RecoverTool` method found out: see `happened`, `didNotHappen` and `outcomeUnknown`. */
export type ProbeResult =
  { result: 'happened'; output: unknown } | { result: 'did-not-happen' } | { result: 'unknown' };

/**
 * The way into the host's tool method. The implementation runs the host's guards, pipes, interceptors and filters; the
 * engine decides when, how often and under which key.
 */
export interface ToolCaller {
  /** Validates and coerces; pure and stable. Never throws for bad arguments. */
  parse(args: JsonObject): ParsedArguments | Promise<ParsedArguments>;
  /** Whether a person must decide; called once per call with a frozen copy. Null = no. A throw counts as yes. */
  approval(
    input: JsonObject,
    call: { runId: string; callId: string; actor: Actor | null },
  ): Promise<ApprovalVerdict | null>;
  /**
   * Runs the method with the host's enhancers.
   * @throws ToolDeniedError when a guard refused, InvalidToolArgumentsError when a pipe refused, else whatever the
   * method threw
   */
  call(input: JsonObject, context: ToolContext, entry: ToolEntry): Promise<unknown>;
  /** The `@RecoverTool` method; undefined where there is none. */
  probe?(call: InterruptedToolCall): Promise<ProbeResult>;
  /** Checks a result that a person or a probe gave; the problems, empty when it fits. */
  checkOutput(output: JsonValue): string[];
}
