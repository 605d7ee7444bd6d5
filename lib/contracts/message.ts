import type { JsonObject, JsonValue } from './json.js';

/** Plain text. */
export interface TextPart {
  type: 'text';
  /** Never blank in what is sent to a model. */
  text: string;
  /** Opaque to this package; goes back to the provider as it came. */
  providerOptions?: JsonObject;
}

/** An image or file: inline as base64 text, or by URL. */
export interface FilePart {
  type: 'file';
  /** IANA media type, e.g. `image/png`; `image/*` where only the kind is known. */
  mediaType: string;
  /** Base64 (RFC 4648 section 4) of the bytes; exactly one of `data` and `url` is set. */
  data?: string;
  /** Where the provider finds it; exactly one of `data` and `url` is set. */
  url?: string;
  /** As the user knows it. */
  filename?: string;
  /** Opaque to this package; goes back to the provider as it came. */
  providerOptions?: JsonObject;
}

/** The model's reasoning, kept because some providers require it back unchanged. */
export interface ReasoningPart {
  type: 'reasoning';
  /** May be empty, where a provider only gives it back encrypted. */
  text: string;
  /** Opaque to this package; goes back to the provider as it came. */
  providerOptions?: JsonObject;
}

/** A call the model asks for. */
export interface ToolCallPart {
  type: 'tool-call';
  /**
   * The provider's id, unless it gave none or one that its conversation has already: unique over the whole transcript.
   */
  callId: string;
  /** The provider's own id, where `callId` differs. */
  originalCallId?: string;
  /** Who made `callId`: only there it goes back unchanged. See `ModelClient.provider`. */
  provider?: string;
  /** As the model wrote it, also where no such tool exists. */
  name: string;
  /** The arguments as the model gave them; absent when they were no JSON object. */
  arguments?: JsonObject;
  /** The text the model gave, kept where it was no JSON object. */
  rawArguments?: string;
  /** Opaque to this package; goes back to the provider as it came. */
  providerOptions?: JsonObject;
}

/**
 * A part that only its provider understands (its own executed calls, sources …): never run by us, no result expected.
 */
export interface OpaquePart {
  type: 'opaque';
  /** As the provider gave it. */
  value: JsonValue;
}

/** The result of a call, as the model is given it. */
export interface ToolResultPart {
  type: 'tool-result';
  /** Of the call it answers. */
  callId: string;
  /** Of the tool. */
  name: string;
  /** How the call ended. */
  outcome: ToolOutcome;
  /** What the model is given: a value for `success`, words otherwise. */
  output: JsonValue;
  /** Present when an approver changed what was to be done: the model learns of it with the output. */
  edits?: ApprovalEdit[];
}

/** Arguments that an approver gave in place of those that were asked for. */
export interface ApprovalEdit {
  /** Who approved. */
  by: string;
  /** What they said with it. */
  note?: string;
  /** What was executed. */
  arguments: JsonObject;
}

/** How a call ended, as the model and the trajectory see it. */
export type ToolOutcome =
  'success' | 'error' | 'denied' | 'unknown' | 'invalid_arguments' | 'unknown_tool' | 'cancelled' | 'not_executed';

/** What a message of a user may consist of. */
export type UserPart = TextPart | FilePart;
/** What a reply of a model may consist of. */
export type AssistantPart = TextPart | FilePart | ReasoningPart | ToolCallPart | OpaquePart;

interface MessageIdentity {
  /** Stable over reads, restarts and events: derived from run and place, never random. Absent in a caller's input. */
  id?: string;
  providerOptions?: JsonObject;
}

/** An instruction that stands in the transcript, apart from the instructions of the agent. */
export interface SystemMessage extends MessageIdentity {
  role: 'system';
  /** Text. */
  content: string;
}

/** A message to the model: the prompt, a message that was sent into the run, or a note about earlier runs. */
export interface UserMessage extends MessageIdentity {
  role: 'user';
  /** At least one part. */
  content: UserPart[];
  /**
   * `steering` for a message that was delivered into a running run; `effects` for the note about what earlier runs of
   * the session did that ended without an answer.
   */
  kind?: 'steering' | 'effects';
  /** Of a steering message: who sent it. */
  sender?: string;
  /** Of an `effects` note: the runs it is about. */
  runIds?: string[];
}

/** A reply of the model. */
export interface AssistantMessage extends MessageIdentity {
  role: 'assistant';
  /** Parts in the order the model gave them. */
  content: AssistantPart[];
}

/** Results of the calls of the reply before it, in call order. */
export interface ToolMessage extends MessageIdentity {
  role: 'tool';
  /** One result for each call. */
  content: ToolResultPart[];
}

/**
 * Messages of a transcript in our own normalised form: what providers need to be asked again, and nothing of their raw
 * bodies. `providerOptions`/`providerMetadata` are opaque to us and returned byte for byte.
 */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;
