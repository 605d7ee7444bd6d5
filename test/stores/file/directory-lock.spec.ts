import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { type LockOwner, processState } from '../../../lib/stores/file/directory-lock.js';
import { loaded, submit } from '../../../packages/contract/lib/scenario.js';
import { FileSubject } from './file-subject.js';

describe('The lock of a directory', () => {
  let subject: FileSubject;
  const children: ChildProcess[] = [];
  beforeEach(async () => void (subject = await FileSubject.create()));
  afterEach(async () => {
    await Promise.all(children.splice(0).map(end));
    await subject.dispose();
  });

  async function otherProcess(): Promise<ChildProcess & { pid: number }> {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    children.push(child);
    await once(child, 'spawn');
    return child as ChildProcess & { pid: number };
  }

  async function end(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  async function lockedBy(owner: Partial<LockOwner> & { pid: number }): Promise<LockOwner> {
    const whole: LockOwner = {
      host: hostname(),
      processStart: processState(owner.pid).start,
      token: 'token-of-another',
      since: '2026-01-01T00:00:00.000Z',
      ...owner,
    };
    await writeFile(subject.path('lock'), `${JSON.stringify(whole)}\n`);
    return whole;
  }

  const lockOf = async () => JSON.parse(await readFile(subject.path('lock'), 'utf8')) as LockOwner;

  it('STO-7: names host, pid, start of the process and a token, and goes when the store is closed', async () => {
    const store = await subject.open();
    const owner = await lockOf();
    expect(owner).toEqual({
      host: hostname(),
      pid: process.pid,
      processStart: processState(process.pid).start,
      token: expect.stringMatching(/^[0-9a-f-]{36}$/),
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    await store.close();
    expect((await readdir(subject.directory)).sort()).toEqual(['commits.log', 'format.json']);
  });

  it('STO-7: refuses a second store of the same process, and lets it in afterwards', async () => {
    const first = await subject.open();
    const second = subject.store();
    const refused = second.open();
    await expect(refused).rejects.toMatchObject({ code: 'STORE_LOCKED', details: { owner: { pid: process.pid } } });
    await expect(refused).rejects.toThrow(`process ${process.pid} on host ${hostname()}`);
    await submit(first, { id: 'run-1' });
    await first.close();
    await second.open();
    await loaded(second, 'run-1');
  });

  it('STO-7: refuses while another process lives, and is taken over when that is dead', async () => {
    const child = await otherProcess();
    const owner = await lockedBy({ pid: child.pid });
    const store = subject.store();
    const refused = store.open();
    await expect(refused).rejects.toMatchObject({ code: 'STORE_LOCKED', details: { owner } });
    await expect(refused).rejects.toThrow(`process ${child.pid} on host ${hostname()}, since 2026-01-01T00:00:00.000Z`);
    expect(await lockOf()).toEqual(owner);
    await end(child);
    await store.open();
    expect((await lockOf()).pid).toBe(process.pid);
    expect((await readdir(subject.directory)).sort()).toEqual(['commits.log', 'format.json', 'lock']);
  });

  it('STO-7: blocks when another process has the pid of its owner now, and says how to clear it', async () => {
    const child = await otherProcess();
    const owner = await lockedBy({ pid: child.pid, processStart: 'an-earlier-boot:1' });
    const store = subject.store();
    const refused = store.open();
    await expect(refused).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    await expect(refused).rejects.toThrow(`another process has that pid now`);
    await expect(refused).rejects.toThrow(`delete ${subject.path('lock')} and start again`);
    expect(await lockOf()).toEqual(owner);
    await rm(subject.path('lock'));
    await store.open();
  });

  it('STO-7: blocks when its owner is on another host, dead or not', async () => {
    const child = await otherProcess();
    const owner = await lockedBy({ pid: child.pid, host: 'elsewhere' });
    await end(child);
    const refused = subject.store().open();
    await expect(refused).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    await expect(refused).rejects.toThrow(
      /on host elsewhere.* cannot be seen from host .*delete .*lock and start again/,
    );
    expect(await lockOf()).toEqual(owner);
  });

  it.each(['', 'not json', '{"pid":1}', 'null'])('STO-7: blocks when it cannot be read: %j', async (text) => {
    await writeFile(subject.path('lock'), text);
    const refused = subject.store().open();
    await expect(refused).rejects.toMatchObject({ code: 'STORE_LOCKED', details: { owner: null } });
    await expect(refused).rejects.toThrow('cannot be read');
    expect(await readFile(subject.path('lock'), 'utf8')).toBe(text);
  });

  it('STO-7: of several stores that find a dead owner at once one succeeds it', async () => {
    const child = await otherProcess();
    await end(child);
    await lockedBy({ pid: child.pid, processStart: 'gone:1' });
    const results = await Promise.allSettled([1, 2, 3, 4].map(() => subject.open()));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'STORE_LOCKED' });
    }
  });

  it('STO-7: is taken over although a process died in the middle of taking it over', async () => {
    const child = await otherProcess();
    await end(child);
    const owner = await lockedBy({ pid: child.pid, processStart: 'gone:1' });
    await writeFile(`${subject.path('lock')}.takeover`, JSON.stringify({ ...owner, token: 'token-of-a-third' }));
    await subject.open();
    expect((await lockOf()).pid).toBe(process.pid);
    expect((await readdir(subject.directory)).sort()).toEqual(['commits.log', 'format.json', 'lock']);
  });

  it('STO-7: that was taken from a living owner stops that owner before it writes again', async () => {
    const store = await subject.open();
    await submit(store, { id: 'run-1' });
    const before = await subject.log();
    const child = await otherProcess();
    const thief = await lockedBy({ pid: child.pid });
    await expect(submit(store, { id: 'run-2' })).rejects.toMatchObject({ code: 'STORE_BROKEN', retryable: false });
    expect(await store.load('run-2')).toBeNull();
    expect((await subject.log()).equals(before)).toBe(true);
    await store.close();
    expect(await lockOf()).toEqual(thief);
  });
});

describe('The identity of a process', () => {
  it('STO-7: is the same each time it is asked for, and another for another process', async () => {
    const own = processState(process.pid);
    expect(own).toEqual({ isAlive: true, start: expect.any(String) });
    expect(processState(process.pid)).toEqual(own);
    // A child, not the parent, which may have started in the same tick of the system's clock.
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
    expect(processState(child.pid as number).start).not.toBe(own.start);
    child.stdin.end();
    await once(child, 'exit');
    expect(processState(child.pid as number)).toEqual({ isAlive: false, start: null });
  });
});
