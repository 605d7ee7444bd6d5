import { readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { jest } from '@jest/globals';
import { CommitLog } from '../../../lib/stores/file/commit-log.js';
import { openLog } from '../../../lib/stores/file/open-log.js';
import { commitText } from '../../../lib/stores/file/log-format.js';
import { dump, InMemoryTables } from '../../../lib/stores/in-memory/tables.js';
import {
  anInteraction,
  appendNotes,
  ask,
  change,
  loaded,
  running,
  submit,
  totalsOf,
  upTo,
} from '../../../packages/contract/lib/scenario.js';
import { FileSubject, fileHandlePrototype, systemError } from './file-subject.js';

describe('A log that is mostly superseded', () => {
  let subject: FileSubject;
  beforeEach(async () => {
    subject = await FileSubject.create();
    const store = await subject.open();
    await running(store, { sessionId: 'session-1' });
    await submit(store, { id: 'run-2', sessionId: 'session-1', metadata: JSON.parse('{"__proto__":"x"}') });
    await appendNotes(store, 'run-1', 1, ['a', { '\ud83d': '\u0000' }], totalsOf(3));
    await ask(store, [anInteraction()]);
    await ask(store, [anInteraction({ status: 'cancelled' })]);
    await store.transition({
      runId: 'run-1',
      decide: () => ({
        result: null,
        run: { change: {}, entries: [], totals: totalsOf(5) },
        inbox: [
          { runId: 'run-1', requestId: 'm', order: 1, sender: 'bob', message: 'hi', status: 'queued', createdAt: 1 },
        ],
      }),
    });
    for (const n of upTo(200)) await change(store, 'run-2', { recoveries: n });
    await store.close();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await subject.dispose();
  });

  const pictureOf = (tables: InMemoryTables) => [...dump(tables)].map(commitText);

  async function opened(worthwhile: number) {
    const tables = new InMemoryTables();
    const { file, end } = await openLog(subject.path('commits.log'), tables, worthwhile);
    return { tables, file, end };
  }

  it('STO-7: is written anew when the directory is opened, and says the same', async () => {
    const before = await opened(Infinity);
    await before.file.close();
    const size = (await subject.log()).length;

    const compacting = await opened(1);
    await compacting.file.close();
    const compacted = await subject.log();
    expect(compacted.length).toBeLessThan(size / 4);
    expect(compacting.end).toEqual({ offset: compacted.length, number: 1, size: compacted.length });
    expect((await stat(subject.path('commits.log'))).mode & 0o777).toBe(0o600);
    expect(await readdir(subject.directory)).not.toContain('commits.log.new');

    const after = await opened(1);
    await after.file.close();
    expect(pictureOf(after.tables)).toEqual(pictureOf(before.tables));
    expect((await subject.log()).equals(compacted)).toBe(true);
    const store = await subject.open();
    expect(await loaded(store, 'run-1')).toMatchObject({ sequence: 4, totals: totalsOf(5) });
    expect((await loaded(store, 'run-2')).recoveries).toBe(200);
  });

  it('STO-7: goes on growing from there', async () => {
    const { tables, file, end } = await opened(1);
    const log = new CommitLog(file, subject.path('commits.log'), end, () => undefined);
    const run = tables.runs.get('run-2');
    const commit = tables.commit([
      { kind: 'header', runId: 'run-2', change: { recoveries: 201, revision: 1 + (run?.revision ?? 0) } },
    ]);
    await log.add(commit as NonNullable<typeof commit>);
    await log.close();
    expect((await loaded(await subject.open(), 'run-2')).recoveries).toBe(201);
  });

  it('STO-7: is left as it is while little of it is superseded', async () => {
    const before = await subject.log();
    const { file } = await opened(1024 * 1024);
    await file.close();
    expect((await subject.log()).equals(before)).toBe(true);
  });

  it('STO-7: is not lost to a compaction that a crash cut, nor to what that left behind', async () => {
    await writeFile(`${subject.path('commits.log')}.new`, 'half a log');
    const { tables, file } = await opened(1);
    await file.close();
    expect(tables.runs.get('run-2')?.recoveries).toBe(200);
    expect(await readdir(subject.directory)).not.toContain('commits.log.new');
  });

  it('STO-7: stays in use when the disk is too full to write it anew', async () => {
    const before = await subject.log();
    jest
      .spyOn(await fileHandlePrototype(), 'write')
      .mockImplementationOnce(() => Promise.reject(systemError('ENOSPC')));
    const { tables, file, end } = await opened(1);
    expect(end.offset).toBe(before.length);
    const log = new CommitLog(file, subject.path('commits.log'), end, () => undefined);
    const commit = tables.commit([{ kind: 'header', runId: 'run-2', change: { recoveries: 201 } }]);
    await log.add(commit as NonNullable<typeof commit>);
    await log.close();
    const after = await readFile(subject.path('commits.log'));
    expect(after.subarray(0, before.length).equals(before)).toBe(true);
    expect(await readdir(subject.directory)).not.toContain('commits.log.new');
    expect((await loaded(await subject.open(), 'run-2')).recoveries).toBe(201);
  });
});
