import type { Actor } from '../contracts/actor.js';
import type { Duration } from '../contracts/duration.js';
import type { RecoveryPolicy } from '../contracts/recovery-policy.js';
import type { StandardSchema } from './standard-schema.js';

/** JSON Schema as a plain object; `{}` means a tool without arguments. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A class with class-validator decorators, a Standard Schema, or a JSON Schema. */
export type ToolSchemaSource = StandardSchema | (new () => object) | JsonSchema;

/** The value a schema describes, as far as its type says it. */
export type ToolValueOf<S> =
  S extends StandardSchema<unknown, infer Output>
    ? Output
    : S extends new () => infer Instance
      ? Instance
      : // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a JSON Schema says nothing to the compiler; `unknown` would only force casts
        Record<string, any>;

/** What an approver is told. */
export interface ApprovalRequirement {
  reason?: string;
  risk?: string;
  /** The role whose holders may decide. */
  approverRole?: string;
  /** After which the ask counts as refused; `never` waits for ever. Default: the module's `approvalExpires`. */
  expiresIn?: Duration | 'never';
}

/**
 * Decides whether a person must approve a call. Asked once in the life of a call, with frozen copies of the validated arguments as they will be
 * executed. One that throws, or takes longer than 5 s, asks.
 */
export type ApprovalRule<Input> = (
  args: Readonly<Input>,
  call: Readonly<{ runId: string; callId: string; actor: Actor | null }>,
) => boolean | ApprovalRequirement | Promise<boolean | ApprovalRequirement>;

export interface AgentToolOptions<S extends ToolSchemaSource = ToolSchemaSource> {
  /** What the model calls it: 1-64 characters of `[A-Za-z0-9_-]`. */
  name: string;
  /** Dotted integers. Several versions of a name may be registered; an agent takes the highest unless it says `name@version`. Default `1`. */
  version?: string;
  /** What the model is told about it. */
  description: string;
  /**
   * The arguments. What leaves this schema (defaults and coercion applied) is what an approver sees, what is digested and what is executed.
   * - a class: transformed by class-transformer (no implicit conversion), validated by class-validator, unknown properties refused; the method gets an instance.
   *   Its transformations must be idempotent
   * - a Standard Schema: its output, as far as JSON can carry it
   * - a JSON Schema: defaults applied, types never coerced; draft 2020-12 unless `$schema` names draft-07
   */
  input: S;
  /** JSON Schema shown to the model instead of the one derived from `input`. Needed for Standard Schemas that cannot describe themselves. */
  inputSchema?: JsonSchema;
  /** What the method returns; checks results that a person or a probe gives in its place. Default: anything. */
  output?: ToolSchemaSource;
  /** What may be done about a call that was cut in the middle. Default `manual`. */
  recovery?: RecoveryPolicy;
  /** Whether a person must approve. Default false. */
  approval?: boolean | ApprovalRule<ToolValueOf<S>>;
  /**
   * Per execution, also of the check of its arguments by `input`. Default: the module's `defaults.toolTimeout`, else no limit. A `transactional` tool has
   * the smaller of this and `transactionTimeout`.
   */
  timeout?: Duration;
  /** Only for `transactional`: after which the transaction is rolled back. At most, and by default when `5s` is more, a third of the lease. */
  transactionTimeout?: Duration;
}
