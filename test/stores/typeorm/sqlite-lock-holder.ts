// Another process that holds the write lock of a SQLite file until it is told to let go.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

const SCRIPT = `
  const database = new (require('better-sqlite3'))(process.argv[1]);
  database.exec('BEGIN IMMEDIATE');
  process.stdout.write('held');
  process.stdin.once('data', () => { database.exec('COMMIT'); database.close(); process.exit(0); });
`;

export class SqliteLockHolder {
  private constructor(private readonly child: ChildProcess) {}

  static async hold(file: string): Promise<SqliteLockHolder> {
    const child = spawn(process.execPath, ['-e', SCRIPT, file], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    return new SqliteLockHolder(child);
  }

  async letGo(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.stdin?.write('now');
    await exited;
  }
}
