/** What must be known before a run can go on, or must not be lost: asked again while the store does not answer (I10). */
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import type { EnginePorts } from '../engine-ports.js';
import { Backoff } from './backoff.js';

/**
 * @param isOver looked at before each try
 * @returns null when it was over before the store answered
 * @throws whatever is no passing trouble of the store
 */
export async function untilAnswered<T>(
  ports: Pick<EnginePorts, 'clock' | 'ids'>,
  work: () => Promise<T>,
  isOver: () => boolean = () => false,
): Promise<T | null> {
  const backoff = new Backoff(ports);
  while (!isOver()) {
    try {
      return await work();
    } catch (error) {
      if (!AgentRunsError.is(error) || error.family !== 'store' || !error.retryable) throw error;
      await backoff.wait();
    }
  }
  return null;
}
