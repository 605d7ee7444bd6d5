/** Writes an interaction or an inbox message of a locked run. What is decided, used or delivered stays so: a decision binds once (I7). */
import type { InboxMessage, Interaction } from '../../contracts/interaction.js';
import { StoreConflictError } from '../../errors/store/store-conflict.error.js';
import { perDialect, type Dialect } from './dialect.js';
import { INBOX_COLUMNS, INTERACTION_COLUMNS, inboxRow, interactionOf, interactionRow } from './interaction.mapper.js';
import { queryOne, write, type Program } from './program.js';

const statements = perDialect((dialect) => {
  const { interactions, inbox } = dialect.tables;
  return {
    interaction: `SELECT ${INTERACTION_COLUMNS.join(', ')} FROM ${interactions} WHERE id = ?${dialect.forUpdate}`,
    putInteraction: dialect.insertOrReplace(interactions, INTERACTION_COLUMNS, ['id']),
    message: `SELECT status FROM ${inbox} WHERE run_id = ? AND request_id = ?${dialect.forUpdate}`,
    putMessage: dialect.insertOrReplace(inbox, INBOX_COLUMNS, ['run_id', 'request_id']),
  };
});

export function* putInteraction(dialect: Dialect, interaction: Interaction): Program<void> {
  const row = yield* queryOne(statements(dialect).interaction, [interaction.id]);
  const stored = row && interactionOf(row);
  if (stored && !mayReplace(stored, interaction)) {
    throw new StoreConflictError(
      `Interaction ${stored.id} is ${stored.status} already and cannot become ${interaction.status}.`,
      { details: { runId: stored.runId, interactionId: stored.id, status: stored.status } },
    );
  }
  yield* write(statements(dialect).putInteraction, interactionRow(interaction));
}

/** A decided one may only be used up or withdrawn, with its decision unchanged. */
function mayReplace(stored: Interaction, given: Interaction): boolean {
  if (stored.status === 'pending') return true;
  const isOver = stored.status === 'used' || stored.status === 'cancelled';
  const ends = given.status === 'used' || given.status === 'cancelled';
  const isSameDecision =
    stored.digest === given.digest && JSON.stringify(stored.decision) === JSON.stringify(given.decision);
  return !isOver && ends && isSameDecision;
}

export function* putMessage(dialect: Dialect, message: InboxMessage): Program<void> {
  const stored = yield* queryOne(statements(dialect).message, [message.runId, message.requestId]);
  if (stored && stored['status'] !== 'queued') {
    throw new StoreConflictError(
      `The message with request id ${message.requestId} to run ${message.runId} is ${String(stored['status'])} already.`,
      { details: { runId: message.runId, requestId: message.requestId, status: stored['status'] } },
    );
  }
  yield* write(statements(dialect).putMessage, inboxRow(message));
}
