/** An agent as the engine sees it: everything its behaviour depends on, and the hash over it. */
import type { Actor } from './actor.js';
import type { Message } from './message.js';
import type { ModelClient, ModelSettings, ToolChoice } from './ports/model-client.port.js';
import type { RetryPolicy } from './retry-policy.js';
import type { RunMetadata, SessionMode } from './run.js';
import type { ToolDefinition } from './tool-definition.js';

/** What a function of instructions may build on: copies, the same for every evaluation. */
export interface InstructionsContext {
  agent: string;
  version: string;
  runId: string;
  sessionId: string | null;
  /** The text of what the user says in the run's input. */
  prompt: string;
  /** The run's input. */
  messages: Message[];
  actor: Actor | null;
  metadata: RunMetadata;
}

/** The system prompt, or a function that returns it for a run. */
export type Instructions = string | ((context: InstructionsContext) => string | Promise<string>);

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
  /** `block`: a run stored under another hash needs attention; `accept`: it goes on, both hashes journaled. */
  definitionChange: 'block' | 'accept';
  /** What a reply cut by its length with calls in it leads to: the run fails (default), or the calls are answered as not executed and the model may go on, twice in a row at most. */
  truncatedCalls: 'feedback' | 'fail';
  /** A reply without text, file or call may end the run. Default false. */
  allowEmptyAnswer: boolean;
  /** `fail`: what needs an approval is refused at once, nobody is asked. Default `ask`. */
  approvalMode: 'ask' | 'fail';
}

/** What a worker can execute: the triple a claim is matched on. A null hash accepts any. */
export interface Offer {
  agent: string;
  version: string;
  hash: string | null;
}

/** `name@version#hash`, the form kept on the worker row; `*` for any hash. */
export function offerText(offer: Offer): string {
  return `${offer.agent}@${offer.version}#${offer.hash ?? '*'}`;
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
