/**
 * Decides approvals in the moment, without a person: asked once when a call or a method needs one, before anybody else is told (again
 * only when the process died before the answer was committed). What it decides is journaled like a person's decision; nothing is listed for people then.
 */
import type { Actor } from '../actor.js';
import type { JsonObject } from '../json.js';

export interface ApprovalToResolve {
  runId: string;
  sessionId: string | null;
  agent: string;
  version: string;
  tool: string;
  callId: string;
  operationKey: string;
  /** As they will be executed; of a method's own ask, what it wants approved. A copy. */
  arguments: JsonObject;
  /** What a decision is bound to. */
  digest: string;
  reason: string | null;
  risk: string | null;
  approverRole: string | null;
  /** Who the run works for. */
  actor: Actor | null;
}

export interface ApprovalResolution {
  decision: 'approve' | 'deny';
  /** Who or what decided, for the journal. */
  by: string;
  note?: string;
}

export interface ApprovalResolver {
  /** Null leaves it to people; so does a throw, anything but a decision in its literal words, and an answer that takes longer than 5 s. */
  resolve(asked: ApprovalToResolve): ApprovalResolution | null | Promise<ApprovalResolution | null>;
}
