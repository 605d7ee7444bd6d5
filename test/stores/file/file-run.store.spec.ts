import { chmod, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { FileRunStore } from '../../../lib/stores/file/file-run.store.js';
import {
  appendNotes,
  beat,
  change,
  claim,
  journal,
  loaded,
  notesOf,
  running,
  submit,
  upTo,
} from '../../../packages/contract/lib/scenario.js';
import { signal } from '../../support/signal.js';
import { FileSubject, fileHandlePrototype } from './file-subject.js';

let subject: FileSubject;
beforeEach(async () => void (subject = await FileSubject.create()));
afterEach(async () => {
  jest.restoreAllMocks();
  await subject.dispose();
});

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

describe('The directory of a FileRunStore', () => {
  it('STO-7: is made with its parents, for its owner alone', async () => {
    const before = process.umask(0);
    try {
      const directory = join(subject.directory, 'a', 'b');
      await subject.open(directory);
      expect(await modeOf(directory)).toBe('700');
      expect(await modeOf(join(subject.directory, 'a'))).toBe('700');
      for (const file of ['lock', 'format.json', 'commits.log'])
        expect(await modeOf(join(directory, file))).toBe('600');
    } finally {
      process.umask(before);
    }
  });

  it('STO-7: has its log closed to others again when it came back open to them', async () => {
    await (await subject.open()).close();
    await chmod(subject.path('commits.log'), 0o644);
    await subject.open();
    expect(await modeOf(subject.path('commits.log'))).toBe('600');
  });

  it('STO-7: holds three files of fixed names, whatever ids are stored', async () => {
    const store = await subject.open();
    for (const [n, id] of [
      '..',
      '.',
      'a:b',
      'CON',
      'con',
      'x'.repeat(128),
      '../../outside',
      'nul\u0000',
      '\ud83d',
    ].entries()) {
      await submit(store, { id, sessionId: `session-${id}`, requestId: `${n}-${id}` });
      expect((await loaded(store, id)).sessionId).toBe(`session-${id}`);
    }
    expect((await readdir(subject.directory)).sort()).toEqual(['commits.log', 'format.json', 'lock']);
  });

  it('STO-6: carries a format version, and one of a newer package is refused, naming both', async () => {
    await (await subject.open()).close();
    expect(JSON.parse(await readFile(subject.path('format.json'), 'utf8'))).toEqual({
      format: 'nestjs-agent-runs',
      version: 1,
    });
    const newer = JSON.stringify({ format: 'nestjs-agent-runs', version: 7 });
    await writeFile(subject.path('format.json'), newer);
    const before = await subject.log();
    const refused = subject.store().open();
    await expect(refused).rejects.toMatchObject({ code: 'NEWER_SCHEMA', details: { found: 7, supported: 1 } });
    await expect(refused).rejects.toThrow(/format 7; this package reads formats up to 1/);
    expect(await readFile(subject.path('format.json'), 'utf8')).toBe(newer);
    expect((await subject.log()).equals(before)).toBe(true);
    expect(await readdir(subject.directory)).not.toContain('lock');
  });

  it.each(['', '{}', '[]', '{"format":"other","version":1}', '{"format":"nestjs-agent-runs","version":"1"}'])(
    'STO-6: that is described as something else is refused: %j',
    async (text) => {
      await writeFile(subject.path('format.json'), text);
      await expect(subject.store().open()).rejects.toMatchObject({ code: 'STORE_BROKEN' });
    },
  );

  it('STO-7: that cannot be made is a store that is unavailable', async () => {
    await writeFile(join(subject.directory, 'file'), '');
    await expect(subject.store(join(subject.directory, 'file', 'x')).open()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      details: { code: 'ENOTDIR' },
    });
    await mkdir(subject.path('commits.log'));
    await expect(subject.store().open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  it('CFG-1: must be given', () => {
    for (const directory of ['', ' ', undefined, 5]) {
      expect(() => new FileRunStore({ directory: directory as string })).toThrow('FileRunStore needs `directory`');
    }
  });
});

describe('A FileRunStore', () => {
  it('says what it is', () => {
    expect(subject.store().traits).toEqual({ name: 'file', durable: true, shared: false, transactions: false });
  });

  it('JRN-5b: has no transactions, neither for tools nor for hosts', async () => {
    const store = await subject.open();
    expect(() => store.openToolTransaction()).toThrow(/file store has no transactions/);
    const decide = jest.fn<() => never>();
    const request = { runId: 'r', sessionId: null, requestScope: 's', requestId: 'r', decide, transaction: {} };
    await expect(store.create(request)).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
    expect(decide).not.toHaveBeenCalled();
  });

  it('is unavailable before it is opened and after it is closed, and may be opened again', async () => {
    const store = subject.store();
    await expect(store.load('run-1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await store.close();
    await store.open();
    await submit(store, { id: 'run-1' });
    await store.close();
    await expect(submit(store, { id: 'run-2' })).rejects.toThrow('is not open');
    await store.open();
    await loaded(store, 'run-1');
    expect(await store.load('run-2')).toBeNull();
  });

  it('opens once however often it is asked to, and a close during the opening wins', async () => {
    const store = subject.store();
    await Promise.all([store.open(), store.open(), store.open()]);
    await submit(store, { id: 'run-1' });
    await store.close();
    const opening = store.open();
    await store.close();
    await opening;
    await expect(store.load('run-1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await loaded(await subject.open(), 'run-1');
  });

  it('flushes what was begun when it is closed', async () => {
    const store = await subject.open();
    const begun = upTo(20).map((n) => submit(store, { id: `run-${n}` }));
    await store.close();
    expect((await Promise.all(begun)).every(({ created }) => created)).toBe(true);
    expect((await (await subject.open()).list({ limit: 100 })).items).toHaveLength(20);
  });

  it('OWN-4: opened by the next process, lets it take over at once what the last one ran', async () => {
    const first = await subject.open();
    await running(first);
    await appendNotes(first, 'run-1', 1, ['kept']);
    await first.close();
    const second = await subject.open();
    expect(await second.liveWorkers()).toEqual([]);
    await beat(second, 'worker-2');
    expect(await claim(second, 'run-1', 'worker-2')).toBe(2);
  });
});

describe('The commits of a FileRunStore', () => {
  it('JRN-2: are answered after the flush, and nobody reads them before', async () => {
    const store = await subject.open();
    await submit(store, { id: 'run-1' });
    const gate = signal();
    const flush = jest.spyOn(await fileHandlePrototype(), 'datasync').mockImplementationOnce(() => gate.promise);
    const answered: string[] = [];
    let visible = false;
    const work = [
      submit(store, { id: 'run-2' }, { onVisible: () => (visible = true) }).then(() => answered.push('create')),
      store.load('run-2').then((found) => answered.push(`load ${found?.run.id}`)),
      store.list({ limit: 5 }).then(({ items }) => answered.push(`list ${items.length}`)),
      submit(store, { id: 'run-2', requestId: 'other' }).catch(() => answered.push('refused')),
    ];
    while (flush.mock.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    for (const _ of upTo(20)) await new Promise((resolve) => setImmediate(resolve));
    expect([answered, visible]).toEqual([[], false]);
    gate.resolve();
    await Promise.all(work);
    expect(answered.sort()).toEqual(['create', 'list 2', 'load run-2', 'refused']);
    expect(visible).toBe(true);
  });

  it('STO-7: of one moment share a flush, and one alone waits for nobody', async () => {
    const store = await subject.open();
    const flush = jest.spyOn(await fileHandlePrototype(), 'datasync');
    await Promise.all(upTo(50).map((n) => submit(store, { id: `run-${n}` })));
    expect(flush).toHaveBeenCalledTimes(1);
    for (const n of upTo(3)) await change(store, 'run-1', { recoveries: n });
    expect(flush).toHaveBeenCalledTimes(4);
  });

  it('STO-7: that come during a flush share the next one', async () => {
    const store = await subject.open();
    const gate = signal();
    const flush = jest.spyOn(await fileHandlePrototype(), 'datasync').mockImplementationOnce(() => gate.promise);
    const first = submit(store, { id: 'first' });
    while (flush.mock.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const others = upTo(30).map((n) => submit(store, { id: `run-${n}` }));
    gate.resolve();
    await Promise.all([first, ...others]);
    expect(flush).toHaveBeenCalledTimes(2);
  });

  it('JRN-3: cost as much with a thousand runs stored as with one', async () => {
    const store = await subject.open();
    await running(store);
    const bytes = async () => {
      const before = (await subject.log()).length;
      await appendNotes(store, 'run-1', 1, ['x'.repeat(200)]);
      await change(store, 'run-1', { recoveries: 1 });
      return (await subject.log()).length - before;
    };
    const early = await bytes();
    await Promise.all(upTo(1_000).map((n) => submit(store, { id: `other-${n}` })));
    await appendNotes(store, 'run-1', 1, upTo(1_000));
    const write = jest.spyOn(await fileHandlePrototype(), 'write');
    const late = await bytes();
    expect(early).toBeLessThan(1_000);
    expect(late).toBeLessThan(early + 50);
    expect(write.mock.calls).toHaveLength(2);
  });

  it('STO-7: larger than a frame are split over frames, and read back whole', async () => {
    const store = await subject.open();
    const large = 'é'.repeat(1_500_000);
    await Promise.all(upTo(6).map((n) => submit(store, { id: `run-${n}`, output: { n, large } })));
    await store.close();
    expect((await subject.log()).toString().split('\n').length - 1).toBeGreaterThan(1);
    const again = await subject.open();
    for (const n of upTo(6)) {
      const { output } = await loaded(again, `run-${n}`);
      expect((output as { large: string }).large === large).toBe(true);
    }
  });

  it('STO-1: repeated after a restart are known for what they are', async () => {
    const store = await subject.open();
    await running(store);
    const entries = [
      {
        type: 'operation.late_result' as const,
        at: 1,
        key: 'k',
        attempt: 1,
        output: { b: 1, a: 0.1, '10': 'x', '9': '\ud83d' },
      },
    ];
    const { totals } = await loaded(store, 'run-1');
    const request = { runId: 'run-1', attempt: 1, firstSequence: 3, entries, totals };
    await store.append(request);
    await store.close();
    const again = await subject.open();
    await again.append(request);
    expect(notesOf(await journal(again, 'run-1'))).toHaveLength(1);
  });
});
