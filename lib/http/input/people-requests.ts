/**
 * The bodies of the routes by which people take part in a run. Nothing but the literal words decides: no conversion, no other case, no
 * list of one. Who decides or sends is the actor, never the body.
 */
import type { JsonObject } from '../../contracts/json.js';
import { IDENTIFIER, MAX_NOTE } from './field-rules.js';
import { given } from '../../contracts/given-fields.js';
import { RequestFields } from './request-fields.js';

export type DecisionBody = { note?: string } & (
  | { decision: 'approve'; arguments?: JsonObject }
  | { decision: 'deny' }
  | { action: 'accept'; answers: JsonObject }
  | { action: 'decline' | 'cancel' }
);

/** Exactly one of `decision`, for an approval, and `action`, for a question. */
export function readDecision(body: unknown): DecisionBody {
  return RequestFields.read(body, (fields) => {
    if (fields.has('decision') === fields.has('action')) {
      fields.report('decision', 'is required for an approval, or action for a question: exactly one of the two');
    }
    const decision = fields.choice('decision', ['approve', 'deny'] as const);
    const action = fields.choice('action', ['accept', 'decline', 'cancel'] as const);
    const edited = fields.json('arguments');
    const answers = fields.json('answers');
    if (fields.has('arguments') && decision !== 'approve') fields.report('arguments', 'go with decision approve only');
    if (fields.has('answers') && action !== 'accept') fields.report('answers', 'go with action accept only');
    if (action === 'accept' && !fields.has('answers')) fields.report('answers', 'are required: one per question id');
    const note = fields.text('note', { notBlank: true, maxLength: MAX_NOTE });
    return given({ decision, action, note, arguments: edited, answers }) as DecisionBody;
  });
}

export interface SteerBody {
  message: string;
  requestId?: string;
}

export function readSteer(body: unknown): SteerBody {
  return RequestFields.read(body, (fields) =>
    given({
      message: fields.text('message', { required: true, notBlank: true }) as string,
      requestId: fields.text('requestId', { pattern: IDENTIFIER }),
    }),
  );
}

interface RunAgainBody {
  reason?: string;
  maxTurns?: number;
}

export function readRetry(body: unknown): RunAgainBody {
  return RequestFields.read(body, (fields) => given(runAgain(fields)));
}

function runAgain(fields: RequestFields) {
  return {
    reason: fields.text('reason', { notBlank: true, maxLength: MAX_NOTE }),
    maxTurns: fields.positiveInteger('maxTurns'),
  };
}

export function readRestart(body: unknown): RunAgainBody & { prompt?: string } {
  return RequestFields.read(body, (fields) =>
    given({
      ...runAgain(fields),
      prompt: fields.text('prompt', { notBlank: true }),
    }),
  );
}

export interface BudgetDecisionBody {
  decision: 'grant' | 'deny';
  amount?: number;
  note?: string;
}

export function readBudgetDecision(body: unknown): BudgetDecisionBody {
  return RequestFields.read(body, (fields) => {
    if (!fields.has('decision')) fields.report('decision', 'is required');
    const decision = fields.choice('decision', ['grant', 'deny'] as const);
    const amount = fields.positiveInteger('amount');
    if (fields.has('amount') && decision !== 'grant') fields.report('amount', 'goes with decision grant only');
    const note = fields.text('note', { notBlank: true, maxLength: MAX_NOTE });
    return given({ decision: decision as BudgetDecisionBody['decision'], amount, note });
  });
}
