/** Which process is meant by a pid: pids are reused, a pid together with the moment its process began is not. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface ProcessState {
  isAlive: boolean;
  /** When it began, as the system tells it; null where it does not. Only good for comparing. */
  start: string | null;
}

export function processState(pid: number): ProcessState {
  const stat = statOf(pid);
  // A zombie has a pid and runs nothing: it cannot write any more.
  if (stat) return { isAlive: stat.state !== 'Z' && stat.state !== 'X', start: stat.start };
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Without permission it is somebody else's, but it is there.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return { isAlive: false, start: null };
  }
  return { isAlive: true, start: startByPs(pid) };
}

/** Linux: proc_pid_stat(5). The boot id keeps the ticks of two boots apart. */
function statOf(pid: number): { state: string; start: string } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    // The command in parentheses may hold anything; the fields that follow are from the third on.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: `${boot}:${fields[19] ?? ''}` };
  } catch {
    return null;
  }
}

function startByPs(pid: number): string | null {
  if (process.platform === 'win32') return null;
  try {
    const answer = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 5_000,
    });
    return answer.trim() || null;
  } catch {
    return null;
  }
}
