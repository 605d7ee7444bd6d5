import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { StoreUnavailableError } from '../../errors/store.errors.js';

/** What a failure of the disk is to callers: passing (I10), with the system's code and never with content. Errors of ours stay what they are. */
export function diskError(what: string, cause: unknown): AgentRunsError {
  if (AgentRunsError.is(cause)) return cause;
  const code = (cause as NodeJS.ErrnoException | null)?.code ?? 'unknown error';
  return new StoreUnavailableError(
    `${what} failed (${code}). Nothing of it counts as committed; see to the disk and try again.`,
    {
      cause,
      details: { code },
    },
  );
}
