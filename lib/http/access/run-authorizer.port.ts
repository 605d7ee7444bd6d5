/**
 * Whether an actor may do something to a run. Called for every route with what the *store* holds about the run, never with what the request says of it
 * (`start` and `list` apart, where the request is the subject). Without one, whoever passes the guards may do everything that `features` allow.
 */
import type { Actor } from '../../contracts/actor.js';
import type { RunMetadata } from '../../contracts/run.js';
import type { ListOptions, StartOptions } from '../../contracts/run-requests.js';
import type { RunStatus } from '../../contracts/run-status.js';

/** `takeover` comes on top of `resume`, when the run is to be taken from a live owner. */
export type RunAction =
  'definitions' | 'start' | 'list' | 'read' | 'read_session' | 'resume' | 'takeover' | 'retry' | 'cancel' | 'resolve';

/** A run as it is stored. */
export interface RunFacts {
  runId: string;
  agent: string;
  version: string;
  status: RunStatus;
  sessionId: string | null;
  /** Who started it. */
  owner: Actor | null;
  metadata: RunMetadata;
}

export interface RunResource {
  /** The stored run; for `start` and `read_session` the latest run of the session, null when it has none. Absent for `list` and `definitions`. */
  run?: RunFacts | null;
  /** The session that is read, or that the new run shall join. */
  sessionId?: string;
  /** For `start`: the checked request. */
  request?: Readonly<StartOptions>;
  /** For `list`: the checked filter. */
  query?: Readonly<ListOptions>;
}

/**
 * What must be true of every run that the action touches: a list is narrowed to it, a new run is stamped with `metadata` (over what the client sent), a
 * stored run that does not match is not there for this actor. One answer for all actions, such as `{ metadata: { tenant } }`, keeps tenants apart.
 */
export interface RunScope {
  sessionId?: string;
  agent?: string;
  metadata?: RunMetadata;
}

export interface RunAuthorizer {
  /** @returns true, false, or the scope within which it is allowed */
  authorize(actor: Actor, action: RunAction, resource: RunResource): boolean | RunScope | Promise<boolean | RunScope>;
}

/** The same as a function. */
export type RunAuthorizerFunction = RunAuthorizer['authorize'];

/** Whether a stored run lies within a scope. Metadata is compared as text, as in lists. */
export function isWithinScope(run: RunFacts, scope: RunScope): boolean {
  return (
    (scope.sessionId === undefined || scope.sessionId === run.sessionId) &&
    (scope.agent === undefined || scope.agent === run.agent) &&
    Object.entries(scope.metadata ?? {}).every(
      ([key, value]) => Object.hasOwn(run.metadata, key) && String(run.metadata[key]) === String(value),
    )
  );
}
