/** What a scripted model answers to one request, as data. */
import type { FinishReason } from '../../contracts/journal-entry.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ModelReplyPart, ModelRequest } from '../../contracts/ports/model-client.port.js';
import type { Usage } from '../../contracts/operation.js';

export interface ScriptedCall {
  name: string;
  /** Default `{}`. */
  args?: JsonValue;
  /** The argument text as it stands, for text that is no JSON; instead of `args`. */
  raw?: string;
  /** Default: derived from the place of the step and of the call, the same in every process. */
  id?: string;
  providerOptions?: JsonObject;
}

export interface ScriptedFailure {
  /** HTTP status; absent for a failure of the network. */
  status?: number;
  /** Default: by the status, as for a real model. */
  retryable?: boolean;
  retryAfterMs?: number;
  message?: string;
  /** So many requests of this step fail before it answers. Default 1; `Infinity` for good. */
  times?: number;
}

export interface ScriptedStep {
  text?: string;
  calls?: readonly ScriptedCall[];
  /** Further parts of the reply, before text and calls: reasoning, files, opaque parts. */
  parts?: readonly ModelReplyPart[];
  /** Default 10 in, 5 out; null for a provider that reports nothing. */
  usage?: Usage | null;
  /** Default `tool-calls` with calls, `stop` without. */
  finishReason?: FinishReason;
  /** Answers with the text of the last message instead of `text`. */
  echo?: boolean;
  fail?: ScriptedFailure;
  /** The answer waits for it; an aborted request does not wait longer. */
  after?: PromiseLike<unknown>;
  /** Milliseconds before the answer; for demonstrations, tests wait for signals. */
  delayMs?: number;
  /** Never answers: `true` until the request is aborted, `'deaf'` not even then. */
  hang?: true | 'deaf';
}

export interface ScriptedPlace {
  /** Of the step in the script, from 0. */
  index: number;
  /** Requests for this step so far, this one included. */
  attempt: number;
}

/** A step, or a function that makes it from the request. */
export type Scripted =
  ScriptedStep | ((request: ModelRequest, place: ScriptedPlace) => ScriptedStep | Promise<ScriptedStep>);
