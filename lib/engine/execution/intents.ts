/** The entries that announce what a run is about to do (I1): committed before the act, by the claim, the start or the step before. */
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { Clock } from '../../contracts/ports/clock.port.js';
import type { Digester } from '../../contracts/ports/digester.port.js';
import { stricterPolicy } from '../../contracts/recovery-policy.js';
import type { RunRecord } from '../../contracts/run.js';
import type { CallState, RunState } from '../journal/run-state.js';
import type { ActionFacts, NextAction } from '../next-action.js';

type Begin = Extract<NextAction, { do: 'call_model' | 'start_calls' }>;

export class IntentWriter {
  constructor(
    private readonly ports: { clock: Clock; digester: Digester },
    private readonly agent: AgentDefinition,
  ) {}

  write(action: Begin, state: RunState): JournalEntry[] {
    const at = this.ports.clock.now();
    if (action.do === 'call_model') {
      return [
        {
          type: 'model.started',
          at,
          key: action.key,
          attempt: action.attempt,
          model: this.agent.model.name,
          digest: state.digest,
        },
      ];
    }
    return action.calls.map((call) => this.callIntent(call, at));
  }

  private callIntent(call: CallState, at: number): JournalEntry {
    const current = this.agent.tools.find(({ name }) => name === call.name)?.recovery ?? call.recovery ?? 'manual';
    // What was once to run in a transaction and is begun without one has no transaction to protect it.
    const stored = call.recovery === 'transactional' ? current : (call.recovery ?? current);
    return {
      type: 'tool.started',
      at,
      key: call.key,
      attempt: call.attempts + 1,
      recovery: stricterPolicy(stored, current),
      digest: this.ports.digester.digest(this.ports.digester.canonical(call.input)),
    };
  }
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
