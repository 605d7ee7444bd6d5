import type { Actor } from './run.js';
import type { JsonObject, JsonValue } from './json.js';

/** `approval`: may this call be executed? `question`: what is the answer? */
export type InteractionKind = 'approval' | 'question';
/** `used`: an approval that its run has taken up; `cancelled`: withdrawn with its run. */
export const INTERACTION_STATUSES = [
  'pending',
  'approved',
  'denied',
  'answered',
  'declined',
  'expired',
  'used',
  'cancelled',
] as const;

/**
 * How far an interaction is. `pending` alone is open; `used` is an approval that its run has taken up, `cancelled` one
 * that was withdrawn with its run.
 */
export type InteractionStatus = (typeof INTERACTION_STATUSES)[number];

/** One question of an interaction. */
export interface Question {
  /** 1-128 characters of `[A-Za-z0-9._:-]`, unique within the interaction. */
  id: string;
  /** What is asked, shown to the person as it is. */
  text: string;
  /** Answers to choose from; absent = free text, or what `schema` says. */
  choices?: string[];
  /** With `choices`: whether another text is accepted. Default false. */
  allowCustom?: boolean;
  /** JSON Schema of the answer. */
  schema?: JsonObject;
}

/** How an interaction was decided (the words of MCP's elicitation for questions). */
export type InteractionDecision =
  | {
      decision: 'approve';
      by: string;
      note?: string;
      /** Full replacement, validated. */
      arguments?: JsonObject;
      /** As they were given, where validation changed them. */
      givenArguments?: JsonObject;
    }
  | { decision: 'deny'; by: string; note?: string }
  | { action: 'accept'; by: string; note?: string; answers: JsonObject }
  | { action: 'decline' | 'cancel'; by: string; note?: string };

/** A durable request of a run to people: an approval or a question. Decided exactly once, bound to one digest (I7). */
export interface Interaction {
  /** Derived from run and operation key. */
  id: string;
  /** Id of the run. */
  runId: string;
  /** Id of its session; null = it has none. */
  sessionId: string | null;
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** Who started the run. */
  actor: Actor | null;
  /** Approval or question. */
  kind: InteractionKind;
  /** `pending` while it is open. */
  status: InteractionStatus;
  /** Key of the call within the run, e.g. `r1.m2.t0`. */
  operationKey: string;
  /** 0 for the interaction that decides whether the call begins; from 1 for those of its method, in their order. */
  ordinal: number;
  /** Id of the call in the transcript; null = it belongs to none. */
  callId: string | null;
  /** Name of the tool; null = it belongs to none. */
  tool: string | null;
  /** Arguments as they will be executed (approval); null for a question. */
  arguments: JsonObject | null;
  /** Over run, operation key, agent@version, tool@version and canonical arguments. */
  digest: string;
  /** Why it is asked; null = no reason was given. */
  reason: string | null;
  /** What may go wrong; null = nothing was said. */
  risk: string | null;
  /** The role whose holders may decide; null = anybody. */
  approverRole: string | null;
  /** For kind `question`; null for an approval. */
  questions: Question[] | null;
  /** Null while pending. */
  decision: InteractionDecision | null;
  /** Epoch ms. */
  createdAt: number;
  /** Epoch ms; null = never. */
  expiresAt: number | null;
  /** Epoch ms; null while open. */
  decidedAt: number | null;
}

/**
 * Text by which the interactions of one run sort in call order: by turn, by place of the call in its reply (the
 * eleventh after the tenth, not after the second), by ordinal. Made for comparison byte by byte, as databases do it
 * with an index: each number is led by how many digits it has.
 */
export function interactionPlace({ operationKey, ordinal }: Pick<Interaction, 'operationKey' | 'ordinal'>): string {
  // `#` comes before everything a key may contain, so that no key sorts between another one and its ordinals.
  return sortable(`${operationKey}#${ordinal}`);
}

function sortable(text: string): string {
  return text.replaceAll(/\d+/g, (digits) => `${digits.length.toString(36)}${digits}`);
}

/** A message sent into a run, delivered once at a boundary. */
export interface InboxMessage {
  /** Id of the run. */
  runId: string;
  /** Unique within the run; the same id again is the same message. */
  requestId: string;
  /** Order of acceptance within the run, from 1. */
  order: number;
  /** Who sent it. */
  sender: string;
  /** A {@link UserMessage} as JSON. */
  message: JsonValue;
  /** `queued` until the run takes it up at a boundary; `withdrawn` with its run. */
  status: 'queued' | 'delivered' | 'withdrawn';
  /** Epoch ms. */
  createdAt: number;
}
