import type { JournalEntryType } from '../journal-entry.js';
import type { Actor } from '../run.js';
import type { Message } from '../message.js';
import type { JsonObject } from '../json.js';

/** A call, or a request of a method, that needs an approval. */
export interface ApprovalToResolve {
  /** Id of the run. */
  runId: string;
  /** Id of its session; null = it has none. */
  sessionId: string | null;
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** Name of the tool. */
  tool: string;
  /** Id of the call in the transcript. */
  callId: string;
  /** The call's key within the run, e.g. `r1.m2.t0`. */
  operationKey: string;
  /** As they will be executed; of a method's own request, what it wants approved. A copy. */
  arguments: JsonObject;
  /** What a decision is bound to. */
  digest: string;
  /** Why it is asked; null = no reason was given. */
  reason: string | null;
  /** What may go wrong; null = nothing was said. */
  risk: string | null;
  /** The role whose holders may decide; null = anybody. */
  approverRole: string | null;
  /** Who the run works for. */
  actor: Actor | null;
}

/** What an {@link ApprovalResolver} decided. */
export interface ApprovalResolution {
  /** Whether the call may be executed. */
  decision: 'approve' | 'deny';
  /** Who or what decided, for the journal. */
  by: string;
  /** Why, for the journal. */
  note?: string;
}

/**
 * Decides approvals in the moment, without a person: called once when a call or a method needs one, before it is listed
 * for people (again only when the process died before the answer was committed). What it decides is journaled like a
 * person's decision; nothing is listed for people then.
 */
export interface ApprovalResolver {
  /**
   * Null leaves it to people; so does a throw, anything but a decision in its literal words, and an answer that takes
   * longer than 5 s.
   */
  resolve(asked: ApprovalToResolve): ApprovalResolution | null | Promise<ApprovalResolution | null>;
}

/** What an {@link InputGuardrail} looks at: messages that are not stored yet. */
export interface ScreenedInput {
  /** What a run is started with, or a message into an open run. */
  kind: 'prompt' | 'steering';
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** Id of the run. */
  runId: string;
  /** Id of its session; null = it has none. */
  sessionId: string | null;
  /** Copies, in their stored form. */
  messages: readonly Message[];
  /** Who says it; null when the caller gave none. */
  actor: Actor | null;
}

/**
 * Why it is refused, in words that may be shown; or null to let it pass. Anything else, `undefined` and `true`
 * included, refuses.
 */
export type InputVerdict = { refuse: string } | null;

/**
 * Screens the input of a run, before it is stored: prompts at `start`, steering at `steer`; never again on a
 * resume. A refused prompt leaves a `blocked` run whose model was never called; a refused steering message is not
 * queued.
 */
export interface InputGuardrail {
  /** A throw refuses nothing: it comes out of `start` or `steer` as it is. */
  screen(input: ScreenedInput): InputVerdict | Promise<InputVerdict>;
}

/** A journal entry as a {@link RunObserver} gets it: what happened, without content. */
export interface LifecycleEvent {
  /** Id of the run. */
  runId: string;
  /** Of the entry within its run, from 1. */
  sequence: number;
  /** Type of the journal entry. */
  type: JournalEntryType;
  /** When it was recorded. */
  at: Date;
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** Id of its session; null = it has none. */
  sessionId: string | null;
  /** Id of who started the run. */
  actor: string | null;
  /**
   * Chosen facts: keys, attempts, codes, counts; never prompts, arguments or results. Points in time are ISO 8601 text.
   */
  details: Record<string, string | number | boolean | null>;
}

/**
 * Receives what this process committed, after the commit: each entry at most once, those of one run in the order of
 * their sequences, without content. An entry is not delivered at all when the process ends between the commit and the
 * call, or when the answer to the commit was lost; the sequences show the gap, and the run's events have the entry. An
 * observer that throws or rejects is logged and changes nothing.
 */
export interface RunObserver {
  /** Called after the commit; the run does not wait for it. */
  onEvent(event: LifecycleEvent): void | Promise<void>;
}

/** Whether a field of an answer fits; undefined where it has none. */
export type FieldCheck = (value: unknown) => boolean;

export const isText: FieldCheck = (value) => typeof value === 'string' && value.trim() !== '';
export const optional =
  (check: FieldCheck): FieldCheck =>
  (value) =>
    value === undefined || check(value);

/**
 * What host code answered at a gate (a guardrail, a resolver, a probe, an approval rule, an authorizer), as a copy of
 * its fields; null for whatever is not exactly such an answer: no object, a field that does not fit or is not known, a
 * getter that throws. What null means is the gate's to say, and it never means open.
 */
export function readAnswer<T>(answer: unknown, fields: { [Field in keyof T]-?: FieldCheck }): T | null {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return null;
  try {
    const copy = { ...answer } as Record<string, unknown>;
    const isKnown = Object.keys(copy).every((name) => Object.hasOwn(fields, name));
    const fits = Object.entries<FieldCheck>(fields).every(([name, check]) => check(copy[name]));
    return isKnown && fits ? (copy as T) : null;
  } catch {
    return null;
  }
}
