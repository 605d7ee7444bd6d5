import { appendFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { jest } from '@jest/globals';
import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';
import type { FileRunStore } from '../../../lib/stores/file/file-run.store.js';
import type { RunStore } from '../../../lib/contracts/ports/run-store.port.js';
import {
  anInteraction,
  appendNotes,
  ask,
  beat,
  change,
  claim,
  journal,
  loaded,
  note,
  notesOf,
  running,
  settleInSession,
  submit,
  totalsOf,
  upTo,
} from '../../../packages/contract/lib/scenario.js';
import { FileSubject, fileHandlePrototype, systemError } from './file-subject.js';

describe('A FileRunStore whose disk fails', () => {
  let subject: FileSubject;
  let handles: FileHandle;
  let store: FileRunStore;
  beforeEach(async () => {
    subject = await FileSubject.create();
    handles = await fileHandlePrototype();
    store = await subject.open();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await subject.dispose();
  });

  const failOnce = (method: 'datasync' | 'write' | 'truncate', code: string) =>
    jest.spyOn(handles, method as 'datasync').mockImplementationOnce(() => Promise.reject(systemError(code)));

  /** Some of a write lands, then the disk is full. */
  const tearWrite = (bytes: number) => {
    const write = handles.write as (this: FileHandle, ...args: unknown[]) => Promise<unknown>;
    jest
      .spyOn(handles, 'write')
      .mockImplementationOnce(function (
        this: FileHandle,
        buffer: unknown,
        offset: unknown,
        _length: unknown,
        at: unknown,
      ) {
        return write.call(this, buffer, offset, bytes, at);
      } as never)
      .mockImplementationOnce(() => Promise.reject(systemError('ENOSPC')));
  };

  it.each([
    ['datasync', 'EIO'],
    ['datasync', 'ENOSPC'],
    ['write', 'ENOSPC'],
  ] as const)(
    'STO-7: in %s with %s refuses the commit as unavailable and stands where it stood',
    async (method, code) => {
      await running(store);
      const before = await loaded(store, 'run-1');
      const log = await subject.log();
      failOnce(method, code);
      const refused = appendNotes(store, 'run-1', 1, ['lost'], totalsOf(9));
      await expect(refused).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, details: { code } });
      expect(await loaded(store, 'run-1')).toEqual(before);
      expect((await subject.log()).equals(log)).toBe(true);
      await appendNotes(store, 'run-1', 1, ['kept']);
      await store.close();
      expect(notesOf(await journal(await subject.open(), 'run-1'))).toEqual(['kept']);
    },
  );

  it('STO-7: in the middle of a write cuts what landed of it', async () => {
    await running(store);
    const log = await subject.log();
    tearWrite(57);
    await expect(appendNotes(store, 'run-1', 1, ['lost'])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect((await subject.log()).equals(log)).toBe(true);
    await appendNotes(store, 'run-1', 1, ['kept']);
    await store.close();
    expect(notesOf(await journal(await subject.open(), 'run-1'))).toEqual(['kept']);
  });

  it('STO-7: again and again is unavailable again and again, and carries on when it is well', async () => {
    await running(store);
    jest.spyOn(handles, 'datasync').mockImplementation(() => Promise.reject(systemError('EIO')));
    for (const n of upTo(3))
      await expect(appendNotes(store, 'run-1', 1, [n])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect((await loaded(store, 'run-1')).sequence).toBe(2);
    jest.restoreAllMocks();
    await appendNotes(store, 'run-1', 1, ['kept']);
    await store.close();
    expect(notesOf(await journal(await subject.open(), 'run-1'))).toEqual(['kept']);
  });

  it('STO-7: and cannot be cut either, writes over what it could not cut', async () => {
    await running(store);
    failOnce('datasync', 'EIO');
    failOnce('truncate', 'EIO');
    await expect(appendNotes(store, 'run-1', 1, ['a long text that was never answered for'])).rejects.toThrow('EIO');
    await appendNotes(store, 'run-1', 1, ['kept']);
    await store.close();
    expect(notesOf(await journal(await subject.open(), 'run-1'))).toEqual(['kept']);
  });

  it('STO-7: takes everything down that was built on what it lost', async () => {
    await submit(store, { id: 'run-1', sessionId: 'session-1' });
    await submit(store, { id: 'run-2', sessionId: 'session-1' });
    const before = [await loaded(store, 'run-1'), await loaded(store, 'run-2'), await store.session('session-1')];
    failOnce('datasync', 'EIO');
    const visible = jest.fn();
    const results = await Promise.allSettled([
      settleInSession(store, 'run-1', 'completed'),
      claim(store, 'run-2', 'worker-1'),
      submit(store, { id: 'run-3', sessionId: 'session-1' }, { onVisible: visible }),
      ask(store, [anInteraction({ runId: 'run-2' })], 'run-2'),
      store.append({ runId: 'run-2', attempt: 1, firstSequence: 4, entries: [note('x')], totals: totalsOf(1) }),
      // A refusal that rests on what is lost is no answer either.
      submit(store, { id: 'run-3', requestId: 'other' }),
    ]);
    for (const result of results) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE' } });
    }
    expect(visible).not.toHaveBeenCalled();
    expect([await loaded(store, 'run-1'), await loaded(store, 'run-2'), await store.session('session-1')]).toEqual(
      before,
    );
    expect(await store.load('run-3')).toBeNull();
    expect((await store.interactions({ limit: 5 })).items).toEqual([]);
    await settleInSession(store, 'run-1', 'completed');
    expect((await loaded(store, 'run-2')).status).toBe('pending');
    expect((await submit(store, { id: 'run-3', sessionId: 'session-1' })).run.sessionOrder).toBe(3);
  });

  it('STO-7: lets readers see what is on disk, and never what was lost', async () => {
    await running(store);
    failOnce('datasync', 'EIO');
    const lost = change(store, 'run-1', { status: 'cancelled' });
    const [failed, read, listed] = await Promise.allSettled([lost, store.load('run-1'), store.list({ limit: 5 })]);
    expect(failed.status).toBe('rejected');
    expect(read).toMatchObject({ status: 'fulfilled', value: { run: { status: 'running' } } });
    expect(listed).toMatchObject({ status: 'fulfilled', value: { items: [{ status: 'running' }] } });
  });

  it('STO-7: at any moment leaves the same as if the lost commits had never been tried', async () => {
    const twin = new MemoryRunStore();
    let seed = 42;
    const chance = (n: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % n;
    const datasync = handles.datasync;
    let isFailing = false;
    let failures = 0;
    jest.spyOn(handles, 'datasync').mockImplementation(function (this: FileHandle) {
      return isFailing ? Promise.reject(systemError('EIO')) : datasync.call(this);
    });
    const steps: ((to: RunStore, id: string) => Promise<unknown>)[] = [
      (to, id) => submit(to, { id, sessionId: `session-${id.length}`, createdAt: 1, updatedAt: 1 }),
      (to, id) => change(to, id, { recoveries: id.length }, [note(id)]),
      (to, id) => ask(to, [anInteraction({ id: `ask-${id}`, runId: id })], id),
      (to, id) => ask(to, [anInteraction({ id: `ask-${id}`, runId: id, status: 'cancelled' })], id),
      (to, id) => settleInSession(to, id, 'completed'),
      (to, id) => claim(to, id, 'worker-1'),
      (to, id) => appendNotes(to, id, 1, [id, { id }], totalsOf(3)),
    ];
    await beat(store, 'worker-1');
    await beat(twin, 'worker-1');
    for (const _ of upTo(300)) {
      const step = steps[chance(steps.length)] as (typeof steps)[number];
      const id = `run-${'x'.repeat(chance(3))}${chance(8)}`;
      isFailing = chance(4) === 0;
      const failed = await step(store, id).then(
        () => false,
        // Other refusals are answers, and the twin gives them too.
        (error: { code?: string }) => error.code === 'STORE_UNAVAILABLE',
      );
      if (failed) failures += 1;
      else await step(twin, id).catch(() => undefined);
    }
    isFailing = false;
    expect(failures).toBeGreaterThan(20);
    const expected = await picture(twin);
    expect(await picture(store)).toEqual(expected);
    await store.close();
    const again = await subject.open();
    expect(await picture(again)).toEqual(expected);
  });

  it('STO-7: while it is opened does not leave the directory locked', async () => {
    await store.close();
    await appendFile(subject.path('commits.log'), 'torn');
    failOnce('truncate', 'EROFS');
    await expect(subject.store().open()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      details: { code: 'EROFS' },
    });
    await subject.open();
  });
});

/** All that a store holds, times of changes aside. */
async function picture(store: RunStore): Promise<unknown> {
  const { items } = await store.list({ limit: 100 });
  const still = (run: object) => ({ ...run, updatedAt: 0, claimedAt: 0, finishedAt: 0 });
  const runs = items.map(({ id }) => id).sort();
  const { oldestClaimableMs: _oldest, journalBytes: _bytes, offenders: _offenders, ...metrics } = await store.metrics();
  return {
    listed: runs,
    runs: await Promise.all(runs.map(async (id) => still(await loaded(store, id)))),
    journals: await Promise.all(
      runs.map(async (id) => (await journal(store, id)).map(({ type, sequence }) => [type, sequence])),
    ),
    inSession: await Promise.all(
      runs.map(async (id) => {
        const shown = await store.transition({
          runId: id,
          session: true,
          decide: ({ session, nextInSession, interactions }) => ({
            result: [session, nextInSession?.id, interactions],
          }),
        });
        return shown.outcome === 'done' ? shown.result : null;
      }),
    ),
    interactions: (await store.interactions({ limit: 100 })).items,
    pending: await store.countPending(1_000),
    metrics,
  };
}
