/**
 * Interactions and inbox messages between our records and their rows. What is asked for by value has a column; the rest, free text included, lies in one
 * JSON body, which keeps every character on every database.
 */
import { interactionPlace, type InboxMessage, type Interaction } from '../../contracts/interaction.js';
import { fromColumn, readable, searchable } from './column.mapper.js';
import type { Row, SqlValue } from './program.js';

export const INTERACTION_COLUMNS = [
  'id',
  'run_id',
  'session_id',
  'agent',
  'version',
  'kind',
  'status',
  'operation_key',
  'place',
  'digest',
  'approver_role',
  'created_at',
  'expires_at',
  'decided_at',
  'body',
] as const;

type InteractionBody = Pick<
  Interaction,
  'actor' | 'ordinal' | 'callId' | 'tool' | 'arguments' | 'reason' | 'risk' | 'approverRole' | 'questions' | 'decision'
>;

export function interactionRow(one: Interaction): SqlValue[] {
  const { actor, ordinal, callId, tool, reason, risk, approverRole, questions, decision } = one;
  const body: InteractionBody = {
    actor,
    ordinal,
    callId,
    tool,
    arguments: one.arguments,
    reason,
    risk,
    approverRole,
    questions,
    decision,
  };
  return [
    one.id,
    one.runId,
    one.sessionId,
    one.agent,
    one.version,
    one.kind,
    one.status,
    one.operationKey,
    interactionPlace(one),
    one.digest,
    approverRole === null ? null : searchable(approverRole),
    one.createdAt,
    one.expiresAt,
    one.decidedAt,
    JSON.stringify(body),
  ];
}

export function interactionOf(row: Row): Interaction {
  const body = readable(row['run_id'], 'An interaction', () => fromColumn('json', row['body'])) as InteractionBody;
  return {
    id: row['id'] as string,
    runId: row['run_id'] as string,
    sessionId: row['session_id'] as string | null,
    agent: row['agent'] as string,
    version: row['version'] as string,
    actor: body.actor,
    kind: row['kind'] as Interaction['kind'],
    status: row['status'] as Interaction['status'],
    operationKey: row['operation_key'] as string,
    ordinal: body.ordinal,
    callId: body.callId,
    tool: body.tool,
    arguments: body.arguments,
    digest: row['digest'] as string,
    reason: body.reason,
    risk: body.risk,
    approverRole: body.approverRole,
    questions: body.questions,
    decision: body.decision,
    createdAt: Number(row['created_at']),
    expiresAt: fromColumn('number', row['expires_at']) as number | null,
    decidedAt: fromColumn('number', row['decided_at']) as number | null,
  };
}

export const INBOX_COLUMNS = ['run_id', 'request_id', 'position', 'status', 'created_at', 'body'] as const;

export function inboxRow(message: InboxMessage): SqlValue[] {
  const body = JSON.stringify({ sender: message.sender, message: message.message });
  return [message.runId, message.requestId, message.order, message.status, message.createdAt, body];
}

export function inboxMessageOf(row: Row): InboxMessage {
  const body = readable(row['run_id'], 'A message', () => fromColumn('json', row['body'])) as Pick<
    InboxMessage,
    'sender' | 'message'
  >;
  return {
    runId: row['run_id'] as string,
    requestId: row['request_id'] as string,
    order: Number(row['position']),
    sender: body.sender,
    message: body.message,
    status: row['status'] as InboxMessage['status'],
    createdAt: Number(row['created_at']),
  };
}
