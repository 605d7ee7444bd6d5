// The application's own table. Nothing in it is unique but its own number, so a row that was written twice would show.
import { EntitySchema } from 'typeorm';

export const Note = new EntitySchema({
  name: 'CrashNote',
  tableName: 'crash_notes',
  columns: {
    id: { type: 'integer', primary: true, generated: 'increment' },
    operationId: { name: 'operation_id', type: 'varchar', length: 191 },
    text: { type: 'varchar', length: 191 },
  },
});
