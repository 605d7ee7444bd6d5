import { copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openLog } from '../../../lib/stores/file/open-log.js';
import { readJournal } from '../../../lib/stores/in-memory/queries.js';
import { InMemoryTables } from '../../../lib/stores/in-memory/tables.js';
import { appendNotes, change, journal, loaded, notesOf, running } from '../../../packages/contract/lib/scenario.js';
import { FileSubject } from './file-subject.js';

describe('A log whose end was torn by a crash', () => {
  let subject: FileSubject;
  beforeEach(async () => void (subject = await FileSubject.create()));
  afterEach(() => subject.dispose());

  /** Directories like the subject's, with another log. */
  async function withLog(name: string, log: Buffer): Promise<string> {
    const directory = join(subject.directory, name);
    await mkdir(directory, { recursive: true });
    await copyFile(subject.path('format.json'), join(directory, 'format.json'));
    await writeFile(join(directory, 'commits.log'), log);
    return directory;
  }

  async function writtenLog(): Promise<{ log: Buffer; lastFrame: number }> {
    const store = await subject.open();
    await running(store);
    await appendNotes(store, 'run-1', 1, ['kept \u00e9\ud83d\udd11']);
    const lastFrame = (await subject.log()).length;
    await appendNotes(store, 'run-1', 1, ['last \u00e9\ud83d\udd11']);
    await store.close();
    return { log: await subject.log(), lastFrame };
  }

  it('STO-7: is cut at the last whole frame, at whatever byte it was torn', async () => {
    const { log, lastFrame } = await writtenLog();
    expect(log.length - lastFrame).toBeGreaterThan(100);
    const path = join(await withLog('torn', log), 'commits.log');
    for (let end = lastFrame; end < log.length; end += 1) {
      await writeFile(path, log.subarray(0, end));
      const tables = new InMemoryTables();
      const opened = await openLog(path, tables);
      await opened.file.close();
      expect([end, opened.end.offset, (await stat(path)).size]).toEqual([end, lastFrame, lastFrame]);
      expect(notesOf(readJournal(tables, 'run-1', 0, 10)?.entries ?? [])).toEqual(['kept \u00e9\ud83d\udd11']);
    }
  });

  it('STO-7: goes on from there, and reads back what it writes then', async () => {
    const { log, lastFrame } = await writtenLog();
    for (const end of [lastFrame + 1, lastFrame + 60, log.length - 1]) {
      const directory = await withLog(`torn-${end}`, log.subarray(0, end));
      const store = await subject.open(directory);
      await appendNotes(store, 'run-1', 1, ['new']);
      await store.close();
      const again = await subject.open(directory);
      expect(notesOf(await journal(again, 'run-1'))).toEqual(['kept \u00e9\ud83d\udd11', 'new']);
    }
  });

  it('STO-7: is cut whatever the crash left there: zeros, noise, half a frame with a line feed', async () => {
    const { log, lastFrame } = await writtenLog();
    const tails = {
      zeros: Buffer.alloc(5_000),
      noise: Buffer.from(Array.from({ length: 3_000 }, (_, n) => (n * 7919) % 256)),
      lines: Buffer.from('\n\n0\n12345678 9 []\n'),
      half: Buffer.concat([log.subarray(lastFrame, lastFrame + 80), Buffer.from('\n')]),
      blank: Buffer.concat([Buffer.alloc(30), log.subarray(lastFrame + 30)]),
    };
    for (const [name, tail] of Object.entries(tails)) {
      const directory = await withLog(name, Buffer.concat([log.subarray(0, lastFrame), tail]));
      const store = await subject.open(directory);
      expect([name, notesOf(await journal(store, 'run-1'))]).toEqual([name, ['kept \u00e9\ud83d\udd11']]);
      await store.close();
      expect((await readFile(join(directory, 'commits.log'))).length).toBe(lastFrame);
    }
  });

  it('STO-7: may be all there is', async () => {
    const { log } = await writtenLog();
    const store = await subject.open(await withLog('first', log.subarray(0, 20)));
    expect((await store.list({ limit: 1 })).items).toEqual([]);
    await running(store);
  });
});

describe('A log that is damaged before its end', () => {
  let subject: FileSubject;
  beforeEach(async () => void (subject = await FileSubject.create()));
  afterEach(() => subject.dispose());

  async function framesOf(): Promise<Buffer[]> {
    const store = await subject.open();
    await running(store);
    for (const n of [1, 2, 3]) await change(store, 'run-1', { recoveries: n });
    await store.close();
    return (await subject.log())
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((line) => Buffer.from(`${line}\n`));
  }

  it.each([
    ['a flipped bit', (frames: Buffer[]) => void frames[1]?.writeUInt8((frames[1].at(40) ?? 0) ^ 1, 40)],
    ['a missing frame', (frames: Buffer[]) => void frames.splice(1, 1)],
    ['a frame twice', (frames: Buffer[]) => void frames.splice(1, 0, frames[1] as Buffer)],
    [
      'frames in another order',
      (frames: Buffer[]) => void frames.splice(1, 2, frames[2] as Buffer, frames[1] as Buffer),
    ],
    ['a lost beginning', (frames: Buffer[]) => void frames.shift()],
    ['a block of zeros', (frames: Buffer[]) => void frames[2]?.fill(0)],
  ])('STO-7: by %s is refused, naming the place, and left as it is', async (_, damage) => {
    const frames = await framesOf();
    expect(frames.length).toBeGreaterThanOrEqual(4);
    damage(frames);
    const log = Buffer.concat(frames);
    await writeFile(subject.path('commits.log'), log);
    const opening = subject.store().open();
    await expect(opening).rejects.toMatchObject({ code: 'STORE_BROKEN', retryable: false });
    await expect(opening).rejects.toThrow(/commits\.log is damaged at byte \d+: .*[Rr]estore/);
    expect((await subject.log()).equals(log)).toBe(true);
  });

  it('STO-7: does not keep the directory locked', async () => {
    const frames = await framesOf();
    await writeFile(subject.path('commits.log'), Buffer.concat(frames.slice(1)));
    await expect(subject.store().open()).rejects.toThrow('damaged');
    await writeFile(subject.path('commits.log'), Buffer.concat(frames));
    const store = await subject.open();
    expect((await loaded(store, 'run-1')).recoveries).toBe(3);
  });
});
