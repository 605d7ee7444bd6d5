/** Writes an interaction or an inbox message of a locked run. What is decided, used or delivered stays so: a decision binds once (I7). */
import type { InboxMessage, Interaction } from '../../contracts/interaction.js';
import { requireQueued, requireReplaceable } from '../../contracts/store-rules.js';
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
  if (stored) requireReplaceable(stored, interaction);
  yield* write(statements(dialect).putInteraction, interactionRow(interaction));
}

export function* putMessage(dialect: Dialect, message: InboxMessage): Program<void> {
  const stored = yield* queryOne(statements(dialect).message, [message.runId, message.requestId]);
  if (stored) requireQueued({ ...message, status: stored['status'] as InboxMessage['status'] });
  yield* write(statements(dialect).putMessage, inboxRow(message));
}
