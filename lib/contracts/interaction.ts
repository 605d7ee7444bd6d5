/** A durable ask of a run: an approval or a question (spec 3.1). Decided exactly once, bound to one digest (I7). */
import type { JsonObject, JsonValue } from './json.js';

export type InteractionKind = 'approval' | 'question';
export type InteractionStatus =
  'pending' | 'approved' | 'denied' | 'answered' | 'declined' | 'expired' | 'used' | 'cancelled';

export interface Interaction {
  /** Derived from run and operation key. */
  id: string;
  runId: string;
  sessionId: string | null;
  agent: string;
  version: string;
  kind: InteractionKind;
  status: InteractionStatus;
  operationKey: string;
  callId: string | null;
  tool: string | null;
  /** Arguments as they will be executed (approval); null for a question. */
  arguments: JsonObject | null;
  /** Over run, operation key, agent@version, tool@version and canonical arguments. */
  digest: string;
  reason: string | null;
  risk: string | null;
  approverRole: string | null;
  /** The questions, for kind `question`. */
  questions: JsonValue | null;
  /** The decision as it was given: who, note, edited arguments or answers. */
  decision: JsonObject | null;
  /** Epoch ms. */
  createdAt: number;
  /** Epoch ms; null = never. */
  expiresAt: number | null;
  decidedAt: number | null;
}

/** A message sent into a run (STR-1), delivered once at a boundary. */
export interface InboxMessage {
  runId: string;
  requestId: string;
  /** Order of acceptance within the run, from 1. */
  order: number;
  sender: string;
  message: JsonValue;
  status: 'queued' | 'delivered' | 'withdrawn';
  createdAt: number;
}
