import type { FinishReason } from '../journal-entry.js';
import type { JsonObject } from '../json.js';
import type { AssistantPart, Message } from '../message.js';
import type { Usage } from '../operation.js';

/** A tool as the model is told of it. */
export interface ModelToolSpec {
  /** 1-64 characters of `[A-Za-z0-9_-]`. */
  name: string;
  /** What it does and when to call it. */
  description: string;
  /** JSON Schema of the arguments, an object at its root. */
  inputSchema: JsonObject;
}

/** How a model is to answer. What is unset is left to the provider. */
export interface ModelSettings {
  /** Of one reply, in tokens. */
  maxOutputTokens?: number;
  /** How much chance is in the choice of tokens; its range is the provider's. */
  temperature?: number;
  /** Nucleus sampling, 0 to 1. */
  topP?: number;
  /** Only the so many likeliest tokens. */
  topK?: number;
  /** Against tokens that have occurred; its range is the provider's. */
  presencePenalty?: number;
  /** Against tokens by how often they have occurred; its range is the provider's. */
  frequencyPenalty?: number;
  /** Texts that end the reply. */
  stopSequences?: string[];
  /** For the same choice again, where the provider keeps to it. */
  seed?: number;
  /** By provider name, e.g. `{ openai: { reasoningEffort: 'low' } }`. */
  providerOptions?: Record<string, JsonObject>;
}

/** Whether the model may call tools: as it likes, not at all, at least one, or the one that is named. */
export type ToolChoice = 'auto' | 'none' | 'required' | { tool: string };

/** One request to a model: the whole conversation, and what the model may do. */
export interface ModelRequest {
  /** The system prompt; empty = none. */
  instructions: string;
  /**
   * Every tool call in it is followed by its result before the next assistant message (I5). Call ids are unique, and
   * fit this provider as tool names do: what a model invented is replaced.
   */
  messages: readonly Message[];
  /** What the model may call; empty = nothing. */
  tools: readonly ModelToolSpec[];
  /** Default `auto`. */
  toolChoice?: ToolChoice;
  /** The agent's; they go before those of the client. */
  settings?: ModelSettings;
  /** Aborted on cancel, timeout, lost lease and shutdown. */
  signal: AbortSignal;
}

/** A call as the model gave it; our ids are given later. */
export interface ModelReplyCall {
  type: 'tool-call';
  /** Empty or repeated ids are allowed here. */
  callId: string;
  /** Of the tool, as the model wrote it. */
  name: string;
  /** The argument text, unparsed. */
  argumentsText: string;
  /** Opaque to this package; goes back to the provider as it came. */
  providerOptions?: JsonObject;
}

/** A part of a reply. Calls are still as the model gave them. */
export type ModelReplyPart = Exclude<AssistantPart, { type: 'tool-call' }> | ModelReplyCall;

/** What a model answered. */
export interface ModelReply {
  /** In the order the model gave it. */
  content: ModelReplyPart[];
  /**
   * Calls are executed, and text is an answer, only for `stop` and `tool-calls`. What is none of these words is a
   * failed attempt: a client translates the words of its provider.
   */
  finishReason: FinishReason;
  /** More about a bad ending, e.g. the provider's own word; shown in the run's error, so without secrets. */
  finishDetail?: string;
  /** What the provider reported; `{}` for nothing. */
  usage: Usage;
}

/**
 * A language model. Implementations make exactly one request per call, never retry, and return normalised parts.
 * @see ModelCallError in lib/errors/run for what they throw
 */
export interface ModelClient {
  /** Shown in journals and errors, e.g. `openai.chat:gpt-5`. */
  readonly name: string;
  /**
   * Whose ids the calls of its replies carry, e.g. `openai.chat`. Clients of one provider share it: to all of them an
   * id goes back as it came, to others as nine letters and digits. Default: `name`.
   */
  readonly provider?: string;
  /** @throws ModelCallError */
  generate(request: ModelRequest): Promise<ModelReply>;
}
