/** What a claim finds begun and without a result, call by call. Calls that are to run again are made ready in the state. */
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { ToolDefinition } from '../../contracts/tool-definition.js';
import type { CallState, RunState } from '../journal/run-state.js';
import { decideRecovery } from '../recovery-decision.js';

export interface Recovery {
  entries: JournalEntry[];
  /** To be asked about; each counts as in flight until its probe has answered. */
  probes: { tool: ToolDefinition; call: CallState }[];
}

export function recoverCalls(
  state: RunState,
  toolOf: (call: CallState) => ToolDefinition | undefined,
  at: number,
): Recovery {
  const recovery: Recovery = { entries: [], probes: [] };
  const uncertain = (call: CallState, reportedToModel: boolean): void =>
    void recovery.entries.push({ type: 'tool.uncertain', at, key: call.key, interruptedBy: 'crash', reportedToModel });
  for (const call of state.calls.filter(({ status }) => status === 'started')) {
    const tool = toolOf(call);
    const decision = decideRecovery({
      stored: call.recovery ?? 'manual',
      current: tool?.recovery ?? null,
      interruptedBy: 'crash',
      attempts: call.attempts,
    });
    // Begun again by the next action, with an intent of its own: the journal goes on saying `started` until then.
    if (decision === 'repeat' || decision === 'error') call.status = 'ready';
    else if (decision === 'inform') uncertain(call, true);
    else if (decision === 'probe' && tool) recovery.probes.push({ tool, call });
    else uncertain(call, false);
  }
  return recovery;
}
