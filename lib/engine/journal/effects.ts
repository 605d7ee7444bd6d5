import type { CallState, Effect, RunState } from './run-state.js';

/** Whether a call that is over was begun, and could have changed something. A refusal after its beginning did nothing. */
export function mayHaveActed({ attempts, recovery, outcome }: CallState): boolean {
  return attempts > 0 && recovery !== 'safe' && (outcome === 'success' || outcome === 'error' || isOpen(outcome));
}

/** What a run did that is not known to be without effect, oldest first. Calls that have no result are of unknown outcome. */
export function effectsOf({ effects, calls }: RunState): Effect[] {
  const cut = calls.filter(
    ({ status, recovery, steps }) =>
      recovery !== 'safe' && (status === 'started' || status === 'uncertain' || (status !== 'done' && steps.size > 0)),
  );
  return [...effects, ...cut.map(({ name, input }): Effect => ({ name, input, outcome: 'unknown' }))];
}

function isOpen(outcome: CallState['outcome']): boolean {
  return outcome === 'unknown' || outcome === 'cancelled';
}
