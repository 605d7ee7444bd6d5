import type { Actor } from '../contracts/run.js';
import type { Duration } from '../contracts/duration.js';
import type { JsonOf } from '../contracts/json.js';
import type { ToolContext } from '../contracts/ports/tool-caller.port.js';
import type { RecoveryPolicy } from '../contracts/policies.js';
import type { JsonSchema, ToolInputOf, ToolSchemaSource, ToolValueOf } from './tool-value.js';

/** What an approver is told. */
export interface ApprovalRequirement {
  /** Why a person is asked, shown to that person. */
  reason?: string;
  /** What may go wrong, shown to that person. */
  risk?: string;
  /** The role whose holders may decide. */
  approverRole?: string;
  /** After which the ask counts as refused; `never` waits for ever. Default: the module's `approvalExpires`. */
  expiresIn?: Duration | 'never';
}

/**
 * Decides whether a person must approve a call. Asked once in the life of a call, with frozen copies of the validated
 * arguments in their JSON form (a `Date` is text). One that throws, or takes longer than 5 s, asks.
 */
export type ApprovalRule<Input> = (
  args: Readonly<JsonOf<Input>>,
  call: Readonly<{ runId: string; callId: string; actor: Actor | null }>,
) => boolean | ApprovalRequirement | Promise<boolean | ApprovalRequirement>;

/** What `@AgentTool` takes. */
export interface AgentToolOptions<
  S extends ToolSchemaSource = ToolSchemaSource,
  R extends RecoveryPolicy = RecoveryPolicy,
> {
  /** What the model calls it: 1-64 characters of `[A-Za-z0-9_-]`. */
  name: string;
  /**
   * Dotted integers. Several versions of a name may be registered; an agent takes the highest unless it says
   * `name@version`. Default `1`.
   */
  version?: string;
  /** What the model is told about it. */
  description: string;
  /**
   * The arguments. What leaves this schema (defaults and coercion applied) is what an approver sees, what is digested
   * and what is executed.
   * - a class: transformed by class-transformer (no implicit conversion), validated by class-validator, unknown
   *   properties refused; the method gets an instance. Its transformations must be idempotent
   * - a Standard Schema: its output, as far as JSON can carry it
   * - a JSON Schema: defaults applied, types never coerced; draft 2020-12 unless `$schema` names draft-07
   */
  input: S;
  /**
   * JSON Schema shown to the model instead of the one derived from `input`. Needed for Standard Schemas that cannot
   * describe themselves.
   */
  inputSchema?: JsonSchema;
  /** What the method returns; checks results that a person or a probe gives in its place. Default: anything. */
  output?: ToolSchemaSource;
  /** What may be done about a call that was cut in the middle. Default `manual`. */
  recovery?: R;
  /** Whether a person must approve. Default false. */
  approval?: boolean | ApprovalRule<ToolValueOf<S>>;
  /**
   * Per execution, also of the check of its arguments by `input`. Default: the module's `defaults.toolTimeout`, else no
   * limit. A `transactional` tool has the smaller of this and `transactionTimeout`.
   */
  timeout?: Duration;
  /**
   * Only for `transactional`: after which the transaction is rolled back. At most, and by default when `5s` is more, a
   * third of the lease.
   */
  transactionTimeout?: Duration;
}

/**
 * Stands on a method that takes what the schema gives, and then the context; the compiler checks both. Only a
 * `transactional` tool may ask for a `manager`, whose type is the store's (`ToolContext` of `./typeorm`). The
 * descriptor is optional for Nest's `applyDecorators`.
 */
export type AgentToolDecorator<S, R> = <
  Method extends (input: ToolInputOf<S>, context: [R] extends ['transactional'] ? AnyManager : ToolContext) => unknown,
>(
  target: object,
  key: string | symbol,
  descriptor?: TypedPropertyDescriptor<Method>,
) => void;

/** `never` can be passed as any store's transaction. */
interface AnyManager extends ToolContext {
  manager: never;
}
