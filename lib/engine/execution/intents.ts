import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { Clock, Digester } from '../../contracts/ports/system.port.js';
import { stricterPolicy } from '../../contracts/policies.js';
import type { RunRecord } from '../../contracts/run.js';
import type { CallState, RunState } from '../journal/run-state.js';
import type { ActionFacts, NextAction } from '../next-action.js';

/**
 * The entries that announce what a run is about to do (I1): committed before the act, by the claim, the start or the
 * step before.
 */
export function intentsOf(
  action: NextAction,
  state: RunState,
  agent: AgentDefinition,
  ports: { clock: Clock; digester: Digester },
): JournalEntry[] {
  const at = ports.clock.now();
  if (action.do === 'call_model') {
    const { key, attempt } = action;
    return [{ type: 'model.started', at, key, attempt, model: agent.model.name, digest: state.digest }];
  }
  return action.do === 'start_calls' ? action.calls.map((call) => callIntent(call, agent, ports.digester, at)) : [];
}

function callIntent(call: CallState, { tools }: AgentDefinition, digester: Digester, at: number): JournalEntry {
  const current = tools.find(({ name }) => name === call.name)?.recovery ?? call.recovery ?? 'manual';
  // A call that was to run in a transaction and is begun without one has no transaction to protect it.
  const stored = call.recovery === 'transactional' ? current : (call.recovery ?? current);
  return {
    type: 'tool.started',
    at,
    key: call.key,
    attempt: call.attempts + 1,
    recovery: stricterPolicy(stored, current),
    digest: digester.digest(digester.canonical(call.input)),
  };
}

/** The facts `nextAction` needs. Limits were frozen with the run; budget and interrupt are the row's. */
export function actionFacts(
  agent: AgentDefinition,
  run: Pick<RunRecord, 'frozen' | 'budgetMaxTotalTokens' | 'interruptRequest'>,
  maxOperations: number,
  inFlight: ActionFacts['inFlight'],
): ActionFacts {
  const exclusive = new Set(agent.tools.filter(({ recovery }) => recovery === 'transactional').map(({ name }) => name));
  return {
    inFlight,
    toolConcurrency: run.frozen.toolConcurrency,
    maxTurns: run.frozen.maxTurns,
    maxOperations,
    maxModelAttempts: run.frozen.modelRetry.maxAttempts,
    allowEmptyAnswer: agent.allowEmptyAnswer,
    budget: run.budgetMaxTotalTokens,
    interrupt: run.interruptRequest !== null,
    isExclusive: (call) => exclusive.has(call.name),
  };
}
