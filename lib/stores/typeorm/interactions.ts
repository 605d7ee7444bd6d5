import { type InboxMessage, type Interaction, interactionPlace } from '../../contracts/interaction.js';
import type { RunRecord } from '../../contracts/run.js';
import { requireQueued, requireReplaceable } from '../../contracts/store-rules.js';
import { decodePayload, encodePayload } from '../codec/payload-codec.js';
import { type Dialect, perDialect } from './dialect.js';
import { type Program, queryOne, type Row, type SqlValue, write } from './program.js';
import { namesOf, readable, recordOf, searchable, valuesOf } from './rows.js';
import { INBOX, INTERACTIONS } from './tables.js';

export const INTERACTION_COLUMNS = namesOf(INTERACTIONS.columns);
export const INBOX_COLUMNS = namesOf(INBOX.columns);

/** What has no column of its own, free text included: one JSON body keeps every character on every database. */
type InteractionBody = Pick<
  Interaction,
  'actor' | 'ordinal' | 'callId' | 'tool' | 'arguments' | 'reason' | 'risk' | 'approverRole' | 'questions' | 'decision'
>;

function interactionRow(one: Interaction): SqlValue[] {
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
  return valuesOf(INTERACTIONS.columns, one.runId, one, {
    place: interactionPlace(one),
    approver_role: approverRole === null ? null : searchable(approverRole),
    body: encodePayload(one.runId, 'interaction', body),
  });
}

export function interactionOf(row: Row): Interaction {
  const runId = row['run_id'] as string;
  return readable(runId, 'An interaction', () => ({
    ...recordOf<Omit<Interaction, keyof InteractionBody>>(INTERACTIONS.columns, runId, row),
    ...(decodePayload(runId, 'interaction', row['body'] as string) as InteractionBody),
  }));
}

type MessageBody = Pick<InboxMessage, 'sender' | 'message'>;

function inboxRow(message: InboxMessage): SqlValue[] {
  const body: MessageBody = { sender: message.sender, message: message.message };
  return valuesOf(INBOX.columns, message.runId, message, { body: encodePayload(message.runId, 'message', body) });
}

export function inboxMessageOf(row: Row): InboxMessage {
  const runId = row['run_id'] as string;
  return readable(runId, 'A message', () => ({
    ...recordOf<Omit<InboxMessage, keyof MessageBody>>(INBOX.columns, runId, row),
    ...(decodePayload(runId, 'message', row['body'] as string) as MessageBody),
  }));
}

const statements = perDialect((dialect) => {
  const { interactions, inbox } = dialect.tables;
  return {
    interaction: `SELECT ${INTERACTION_COLUMNS.join(', ')} FROM ${interactions} WHERE id = ?${dialect.forUpdate}`,
    putInteraction: dialect.insertOrReplace(interactions, INTERACTION_COLUMNS, ['id']),
    message: `SELECT status FROM ${inbox} WHERE run_id = ? AND request_id = ?${dialect.forUpdate}`,
    putMessage: dialect.insertOrReplace(inbox, INBOX_COLUMNS, ['run_id', 'request_id']),
  };
});

/** Of a locked run. What is decided or used stays so: a decision binds once (I7). */
export function* putInteraction(dialect: Dialect, interaction: Interaction): Program<void> {
  const row = yield* queryOne(statements(dialect).interaction, [interaction.id]);
  const stored = row && interactionOf(row);
  if (stored) requireReplaceable(stored, interaction);
  yield* write(statements(dialect).putInteraction, interactionRow(interaction));
}

/** Of a locked run. What is delivered stays so. */
export function* putMessage(dialect: Dialect, message: InboxMessage): Program<void> {
  const stored = yield* queryOne(statements(dialect).message, [message.runId, message.requestId]);
  if (stored) requireQueued({ ...message, status: stored['status'] as InboxMessage['status'] });
  yield* write(statements(dialect).putMessage, inboxRow(message));
}

/**
 * Since when a run waits for people who have nothing left to answer (I11). The store keeps it on the run's row, in the transaction that changes the run or its
 * asks: the sweeps find such runs, of which there are hardly ever any, without a look at those that wait rightly.
 * @returns epoch ms; null for a run that waits for something, or not at all
 */
export function answeredSince(
  { status, waitingFor }: Pick<RunRecord, 'status' | 'waitingFor'>,
  interactions: readonly Pick<Interaction, 'status'>[],
  now: number,
): number | null {
  const isForPeople = waitingFor.every((reason) => reason === 'approval' || reason === 'question');
  return status === 'waiting' && isForPeople && interactions.every((one) => one.status !== 'pending') ? now : null;
}

/** Asks of a run after some of them were written. */
export function asksAfter(before: readonly Interaction[], written: readonly Interaction[] = []): Interaction[] {
  const ids = new Set(written.map(({ id }) => id));
  return [...before.filter(({ id }) => !ids.has(id)), ...written];
}
