import type { JsonObject, JsonValue } from './json.js';
import type { RecoveryPolicy, RetryPolicy } from './policies.js';
import type { ToolCaller } from './ports/tool-caller.port.js';
import type { Actor, RunMetadata, SessionMode } from './run.js';
import type { Message } from './message.js';
import type { ModelClient, ModelSettings, ToolChoice } from './ports/model-client.port.js';

/** What a function of instructions may build on: copies, the same for every evaluation. */
export interface InstructionsContext {
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** Id of the run. */
  runId: string;
  /** Id of its session; null = it has none. */
  sessionId: string | null;
  /** The text of what the user says in the run's input. */
  prompt: string;
  /** The run's input. */
  messages: Message[];
  /** Who the run works for, as given to `start`; null = nobody was named. */
  actor: Actor | null;
  /** As given to `start`; empty = none. */
  metadata: RunMetadata;
}

/** The system prompt, or a function that returns it for a run. */
export type Instructions = string | ((context: InstructionsContext) => string | Promise<string>);

/** An agent as the engine sees it: everything its behaviour depends on, and the hash over it. */
export interface AgentDefinition {
  name: string;
  /** Dotted integers, compared numerically. */
  version: string;
  /** Over instructions, model name and tools; no limits. */
  hash: string;
  instructions: Instructions;
  modelName: string;
  model: ModelClient;
  tools: readonly ToolDefinition[];
  modelSettings?: ModelSettings;
  /** `required` and a named tool hold for the first request of a run: with every request it could never answer. */
  toolChoice?: ToolChoice;
  /** Default 20. */
  maxTurns: number;
  modelRetry: RetryPolicy;
  /** Default 8. */
  toolConcurrency: number;
  /** Ms per model request; default 10 min. */
  modelTimeoutMs: number;
  /** Active time in ms; null = no limit. */
  maxDurationMs: number | null;
  sessionMode: SessionMode;
  /** `block`: a run stored under another hash needs attention; `accept`: it continues, both hashes journaled. */
  definitionChange: 'block' | 'accept';
  /**
   * What follows from a reply that was truncated with calls in it: the run fails (default), or the calls are answered
   * as not executed and the model may go on, twice in a row at most.
   */
  truncatedCalls: 'feedback' | 'fail';
  /** A reply without text, file or call may end the run. Default false. */
  allowEmptyAnswer: boolean;
  /** `fail`: what needs an approval is refused at once. Default `ask`. */
  approvalMode: 'ask' | 'fail';
}

/** What a worker can execute: the triple a claim is matched on. A null hash accepts any. */
export interface Offer {
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** Of its definition; null = any. */
  hash: string | null;
}

/** `name@version#hash`, the form kept on the worker row; `*` for any hash. */
export function offerText(offer: Offer): string {
  return `${offer.agent}@${offer.version}#${offer.hash ?? '*'}`;
}

/** For messages: what a run needs, and what is offered of its agent. */
export function wantedAndOffered(
  { agent, version, definitionHash }: { agent: string; version: string; definitionHash: string },
  offers: readonly Offer[],
): { wanted: string; offered: string[] } {
  const ofAgent = offers.filter((offer) => offer.agent === agent);
  return {
    wanted: offerText({ agent, version, hash: definitionHash }),
    offered: [...new Set(ofAgent.map(offerText))].sort(),
  };
}

/** Whether a run of this agent, version and hash can be executed under one of the offers. */
export function isOffered(
  run: { agent: string; version: string; definitionHash: string },
  offers: readonly Offer[],
): boolean {
  return offers.some(
    (offer) =>
      offer.agent === run.agent &&
      offer.version === run.version &&
      (offer.hash === null || offer.hash === run.definitionHash),
  );
}

/**
 * A tool as the engine sees it: what the model is given, how it may be recovered, and the port it is called through.
 */
export interface ToolDefinition {
  name: string;
  /** Default '1'. */
  version: string;
  description: string;
  /** JSON Schema of the arguments, as given to the model. */
  inputSchema: JsonObject;
  /** JSON Schema of a result given by a person or a probe; null = anything. */
  outputSchema: JsonValue;
  recovery: RecoveryPolicy;
  /** `rule` when a predicate or `true` decides about approval. */
  approval: 'none' | 'rule';
  /** Ms; null = no limit. Of an execution, and of the check of its arguments. */
  timeoutMs: number | null;
  /** Ms; only for `transactional`, where the smaller of the two counts. */
  transactionTimeoutMs: number;
  /** The call is itself a question to people, in the `questions` of its parsed arguments; it has no method. */
  asksUser?: true;
  caller: ToolCaller;
}

/** An agent by its registered name, or by the class that carries `@Agent`. */
export type AgentReference = string | (abstract new (...args: never[]) => unknown);

/** What this process has registered. Fixed after boot. */
export interface AgentCatalog {
  all(): readonly AgentDefinition[];
  /** The definition; without a version the highest one. Undefined when unknown. */
  find(agent: AgentReference, version?: string): AgentDefinition | undefined;
  /** What this process can execute. */
  offers(): readonly Offer[];
}
