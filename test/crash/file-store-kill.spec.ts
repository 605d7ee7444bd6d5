import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { FileRunStore } from '../../lib/stores/file/file-run.store.js';
import { journal, loaded, notesOf } from '../../packages/contract/lib/scenario.js';

const WRITER = join(process.cwd(), 'test/crash/file-store-writer.mjs');
const RUNS = 4;

describe('A process that is killed while it writes to a directory', () => {
  let directory: string;
  const children: ChildProcess[] = [];
  beforeEach(async () => void (directory = await mkdtemp(join(tmpdir(), 'agent-runs-kill-'))));
  afterEach(async () => {
    await Promise.all(children.splice(0).map(kill));
    await rm(directory, { recursive: true, force: true });
  });

  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  /** Starts a writer; `answered` grows while it lives. */
  function write(runs = RUNS) {
    const child = spawn(process.execPath, [WRITER, directory, String(runs)], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const answered: string[] = [];
    const lines = createInterface({ input: child.stdout });
    const first = once(lines, 'line').then(([line]) => String(line));
    const ended = once(lines, 'close');
    const seen = (count: number) =>
      new Promise<void>((resolve) => lines.on('line', () => void (answered.length >= count && resolve())));
    lines.on('line', (line) => answered.push(line));
    return { child, first, answered, ended, seen };
  }

  it('STO-7: loses nothing that it was answered for, and leaves nothing half done', async () => {
    const expected = new Map<string, string[]>();
    for (let round = 1; round <= 6; round += 1) {
      const { child, first, answered, ended, seen } = write();
      expect(await first).toBe('open');
      await seen(40 * round + RUNS);
      await kill(child);
      await ended;
      // The last line may itself be cut in the pipe; what stands before it was answered.
      for (const line of answered.slice(1, -1)) {
        const [id = '', value = ''] = line.split(' ');
        expected.set(id, [...(expected.get(id) ?? []), value]);
      }
      const store = new FileRunStore({ directory });
      await store.open();
      for (const [id, values] of expected) {
        const entries = await journal(store, id);
        const notes = notesOf(entries).map(String);
        const written = notes.filter((one) => !one.startsWith('claim'));
        expect(written.filter((one) => values.includes(one))).toEqual(values);
        expect(notes.length).toBe(entries.length);
        expect(await loaded(store, id)).toMatchObject({ status: 'running', attempt: round, sequence: entries.length });
        expect(notes.filter((one) => one.startsWith('claim'))).toHaveLength(round);
        // At most one batch a round was written and not answered.
        expect(written.length - values.length).toBeLessThanOrEqual(2 * round);
      }
      await store.close();
    }
    expect(expected.size).toBe(RUNS);
  }, 120_000);

  it('STO-7: is succeeded by one of several that come at once', async () => {
    const dead = write();
    expect(await dead.first).toBe('open');
    await kill(dead.child);
    const lock = await readFile(join(directory, 'lock'), 'utf8');
    expect(JSON.parse(lock)).toMatchObject({ pid: dead.child.pid });
    const heirs = Array.from({ length: 6 }, () => write());
    const answers = await Promise.all(heirs.map(({ first }) => first));
    expect(answers.sort()).toEqual([
      'STORE_LOCKED',
      'STORE_LOCKED',
      'STORE_LOCKED',
      'STORE_LOCKED',
      'STORE_LOCKED',
      'open',
    ]);
  }, 60_000);
});
