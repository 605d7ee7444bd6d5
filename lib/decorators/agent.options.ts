import type { Instructions } from '../contracts/agent-definition.js';
import type { Duration } from '../contracts/duration.js';
import type { ModelSettings, ToolChoice } from '../contracts/ports/model-client.port.js';
import type { SessionMode } from '../contracts/run.js';

/** How model calls are repeated after a passing failure. */
export interface ModelRetryOptions {
  /** Requests in all, the first included. Default 3. */
  maxAttempts?: number;
  /** Before the second request; doubled with each further one. Default `1s`. */
  initialDelay?: Duration;
  /** Upper bound of our own delay. Default `30s`. */
  maxDelay?: Duration;
  /** Upper bound of a delay that the provider announced. Default `10m`. */
  maxRetryAfter?: Duration;
}

/** What an agent may leave out; `AgentRunsModule.forRoot({ defaults })` gives the same for all agents. */
export interface AgentLimits {
  /** Name of a client in the module's `models`. Default `default`. */
  model?: string;
  /** Model calls over the whole run, restarts and approvals included. Default 20. */
  maxTurns?: number;
  /**
   * Temperature, stop sequences, provider options and so on; they go before the settings of the model's client. Part of
   * the definition hash, except `maxOutputTokens`, which is a limit.
   */
  modelSettings?: ModelSettings;
  /**
   * How model requests are repeated after a passing failure; what is left out is the default of {@link RetryPolicy}.
   */
  modelRetry?: ModelRetryOptions;
  /** Tool calls of one turn at a time; 1 = the model's order. Default 8. */
  toolConcurrency?: number;
  /** Per model request. Default `10m`. */
  modelTimeout?: Duration;
  /** Active time of a run, waits not counted, after which it is `timed_out`. Default: no limit. */
  maxDuration?: Duration;
  /** Whether the runs of a session are queued (`serial`, default) or run side by side. */
  sessionMode?: SessionMode;
  /**
   * What becomes of an open run whose agent was changed without a new version: `block` (default) needs a person,
   * `accept` goes on under the new definition and journals both hashes.
   */
  definitionChange?: 'block' | 'accept';
  /**
   * What a reply leads to that was cut by its length and has calls in it: the run fails (`fail`, default), or the calls
   * are answered as not executed and the model may go on (`feedback`).
   */
  truncatedCalls?: 'feedback' | 'fail';
  /**
   * Whether a reply without text, file or call is an answer: the run completes with the output `''`. Default false:
   * such a reply is a failed attempt, unless it follows the results of tools and cost tokens; then the run completes
   * without an output.
   */
  allowEmptyAnswer?: boolean;
  /**
   * What becomes of a call that needs an approval: people are asked (`ask`, default), or it is refused at once
   * (`fail`), unless the application's `ApprovalResolver` decides. Not part of the definition hash; asks that are open
   * stay open. Questions are asked either way.
   */
  approvalMode?: 'ask' | 'fail';
}

/**
 * A class whose `@AgentTool` methods are all meant, or one tool: `name` (its highest version), `name@version`, or
 * `ASK_USER` for the built-in one.
 */
export type ToolReference = string | (abstract new (...args: never[]) => unknown);

/** What `@Agent` takes. */
export interface AgentOptions extends AgentLimits {
  /** 1-128 characters of `[A-Za-z0-9._:-]`. */
  name: string;
  /** Dotted integers such as `1` or `2.10`, compared numerically; the highest is the default of `start`. */
  version: string;
  /**
   * The system prompt, part of the definition hash like the model's name and the tools. A function of the run's input,
   * actor and metadata is evaluated once, before the first model request; what it returned is journaled and used from
   * then on. Of a function the hash says only that it is one.
   */
  instructions: Instructions;
  /** Default: none. */
  tools?: readonly ToolReference[];
  /**
   * Whether the model may call tools. `required` and `{ tool: 'name' }` hold for the first request of a run; afterwards
   * the model chooses, or it could never answer. Default `auto`. Part of the definition hash.
   */
  toolChoice?: ToolChoice;
}
