import { type MigrationInterface, type QueryRunner, Table } from 'typeorm';

const id = { name: 'id', type: 'varchar', length: '36', isPrimary: true };
const text = (name: string, length: string) => ({ name, type: 'varchar', length });

/** The sample's own tables. `IF NOT EXISTS`, because several processes may start at once. */
export class CreateSupportTables1764400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.createTable(
      new Table({
        name: 'tickets',
        columns: [
          id,
          { name: 'text', type: 'text' },
          text('opened_by', '64'),
          text('run_id', '128'),
          { name: 'created_at', type: 'bigint' },
        ],
      }),
      true,
    );
    await runner.createTable(
      new Table({
        name: 'order_notes',
        columns: [id, text('order_id', '64'), { name: 'text', type: 'text' }, text('operation_id', '191')],
        indices: [{ name: 'order_notes_order', columnNames: ['order_id'] }],
      }),
      true,
    );
    await runner.createTable(
      new Table({
        name: 'ledger_entries',
        columns: [
          id,
          text('kind', '32'),
          text('operation_id', '191'),
          text('unique_key', '224'),
          { name: 'details', type: 'text' },
          { name: 'created_at', type: 'bigint' },
        ],
        indices: [
          { name: 'ledger_entries_operation', columnNames: ['operation_id'] },
          { name: 'ledger_entries_unique', columnNames: ['unique_key'], isUnique: true },
        ],
      }),
      true,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of ['ledger_entries', 'order_notes', 'tickets']) await runner.dropTable(name, true);
  }
}
