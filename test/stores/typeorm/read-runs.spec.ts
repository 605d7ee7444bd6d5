import type { RecordedText } from '../../../lib/contracts/text.js';
import { DataSource } from 'typeorm';
import type { TypeOrmRunStore } from '../../../lib/stores/typeorm/typeorm-run.store.js';
import { appendNotes, change, journal, running } from '../../../packages/contract/lib/scenario.js';
import { SqliteSubject } from './sqlite-subject.js';

describe('a run whose rows are damaged', () => {
  let subject: SqliteSubject;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;

  beforeEach(async () => {
    subject = await SqliteSubject.create();
    ({ store, dataSource } = await subject.open());
    for (const id of ['run-1', 'run-2']) {
      await running(store, { id });
      for (const value of ['a', 'b', 'c']) await appendNotes(store, id, 1, [value, value]);
    }
  });

  afterEach(() => subject.dispose());

  const damage = (column: string, text: string, firstSequence: number): Promise<unknown> =>
    dataSource.query(`UPDATE agent_run_journal SET ${column} = ? WHERE run_id = 'run-1' AND first_sequence = ?`, [
      text,
      firstSequence,
    ]);

  const othersAreFine = async (): Promise<void> => {
    expect(await journal(store, 'run-2')).toHaveLength(8);
    expect((await store.list({ limit: 10 })).items).toHaveLength(2);
  };

  it.each([
    ['no JSON', '[{"type":"sk-secret'],
    ['no array', '{}'],
    ['fewer entries than it was written with', '[{"type":"tool.completed"}]'],
  ])('STO-4: is unreadable from a journal row on that holds %s, and only that run is', async (_what, text) => {
    await damage('entries', text, 5);
    expect((await store.readJournal('run-1', 0, 4))?.entries).toHaveLength(4);
    const failure: unknown = await store.readJournal('run-1', 4, 10).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'JOURNAL_CORRUPT', details: { runId: 'run-1' } });
    expect(String(failure)).not.toContain('secret');
    await othersAreFine();
  });

  it('STO-4: is read up to a gap, and corrupt for who stands before it', async () => {
    await dataSource.query(`DELETE FROM agent_run_journal WHERE run_id = 'run-1' AND first_sequence = 5`);
    expect((await store.readJournal('run-1', 0, 100))?.entries.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    await expect(store.readJournal('run-1', 4, 100)).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' });
    await othersAreFine();
  });

  it('STO-4: is corrupt when its journal does not begin', async () => {
    await dataSource.query(`DELETE FROM agent_run_journal WHERE run_id = 'run-1' AND first_sequence = 1`);
    await expect(store.readJournal('run-1', 0, 100)).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' });
  });

  it('STO-4: can still be told to need attention, without an attempt', async () => {
    await damage('totals', 'not JSON', 7);
    await expect(store.load('run-1')).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' });
    const attention = { reason: 'journal_corrupt' as const, detail: 'look at it' as RecordedText };
    const run = await change(store, 'run-1', { status: 'needs_attention', attention }, [
      { type: 'run.attention_needed', at: 1, attention },
    ]);
    expect(run).toMatchObject({ status: 'needs_attention', attempt: 1, sequence: 9 });
    await othersAreFine();
  });

  it('STO-4: names a header column that holds no JSON', async () => {
    await dataSource.query(`UPDATE agent_runs SET frozen = '{' WHERE id = 'run-1'`);
    await expect(store.load('run-1')).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT', details: { runId: 'run-1' } });
    await othersAreFine();
  });
});
