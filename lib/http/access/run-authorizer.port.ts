import type { Actor, RunMetadata } from '../../contracts/run.js';
import { isText, optional, readAnswer } from '../../contracts/ports/host.port.js';
import type { Interaction } from '../../contracts/interaction.js';
import type { ListOptions, PendingInteractionsOptions, StartOptions } from '../../contracts/run-requests.js';
import type { RunStatus } from '../../contracts/run-status.js';

/**
 * One action for each thing that can be done, named for policies:
 *
 * | action | what is done |
 * | --- | --- |
 * | `definitions` | the agents and their tools are listed |
 * | `start` | a run is started |
 * | `list` | runs are listed |
 * | `list_interactions` | asks are listed, with the arguments of the calls they are about |
 * | `read` | a run, its snapshot, messages, events or budget are read |
 * | `read_session` | the messages of a session are read |
 * | `decide` | an approval or a question is decided; an ask with an `approverRole` needs an actor with that role on top, whatever the answer is |
 * | `steer` | a message is sent into a run |
 * | `interrupt`, `resume`, `retry`, `restart`, `cancel` | the run is moved |
 * | `takeover` | on top of `resume`: the run is taken from a live owner |
 * | `budget` | tokens are granted or denied; on top of `resume`, `retry` and `restart`: a limit is replaced |
 * | `resolve` | an operation of unknown outcome is settled |
 */
export type RunAction =
  | 'definitions'
  | 'start'
  | 'list'
  | 'list_interactions'
  | 'read'
  | 'read_session'
  | 'decide'
  | 'steer'
  | 'interrupt'
  | 'resume'
  | 'takeover'
  | 'retry'
  | 'restart'
  | 'cancel'
  | 'budget'
  | 'resolve';

/** A run as it is stored. */
export interface RunFacts {
  /** Id of the run. */
  runId: string;
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** As stored now. */
  status: RunStatus;
  /** Id of its session; null = it has none. */
  sessionId: string | null;
  /** Who started it. */
  owner: Actor | null;
  /** As given to `start`. */
  metadata: RunMetadata;
}

/** What an action is about, for a {@link RunAuthorizer}. What the action has nothing to do with is absent. */
export interface RunResource {
  /**
   * The stored run; for `start` and `read_session` the latest run of the session, null when it has none. Absent for
   * lists and `definitions`.
   */
  run?: RunFacts | null;
  /** The session that is read, or that the new run shall join. */
  sessionId?: string;
  /** For `start`: the checked request. */
  request?: Readonly<StartOptions>;
  /** For `list`: the checked filter. */
  query?: Readonly<ListOptions>;
  /** For `list_interactions`: the checked filter. */
  interactionQuery?: Readonly<PendingInteractionsOptions>;
  /** For `decide`: the stored ask; absent when the run has no such ask. */
  interaction?: Readonly<Interaction>;
}

/**
 * What must be true of every run that the action touches: a list is narrowed to it, a new run is stamped with
 * `metadata` (over what the client sent), a stored run that does not match is not there for this actor. One answer for
 * all actions, such as `{ metadata: { tenant } }`, keeps tenants apart.
 */
export interface RunScope {
  /** Runs of this session alone; absent = of any. */
  sessionId?: string;
  /** Runs of this agent alone; absent = of any. */
  agent?: string;
  /** Runs that have all of these pairs. */
  metadata?: RunMetadata;
  /**
   * For `start` and `read_session`: whose session it must be, such as the tenant. A new session becomes this owner's.
   * Default: a new session becomes the actor's (by id), a stored one is judged by the rest of the scope.
   */
  sessionOwner?: string;
}

/**
 * Whether an actor may do something to a run. Called for every route with what the *store* holds about the run, never
 * with what the request says of it (`start` and lists apart, where the request is the subject). Without one, whoever
 * passes the guards may do everything that `features` allow.
 */
export interface RunAuthorizer {
  /** @returns true, false, or the scope within which it is allowed */
  authorize(actor: Actor, action: RunAction, resource: RunResource): boolean | RunScope | Promise<boolean | RunScope>;
}

/** A {@link RunAuthorizer} as a function. */
export type RunAuthorizerFunction = RunAuthorizer['authorize'];

/**
 * A scope as the host answered it; null for what is none. A field that is there without a value is not one that was
 * left out: `{ metadata: { tenant } }` of an actor without a tenant allows nothing.
 */
export function readScope(answer: unknown): RunScope | null {
  const scope = readAnswer<RunScope>(answer, {
    sessionId: optional(isText),
    agent: optional(isText),
    sessionOwner: optional(isText),
    metadata: optional((metadata) => typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)),
  });
  if (!scope || Object.values(scope).includes(undefined)) return null;
  const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value);
  return Object.values(scope.metadata ?? {}).every(isScalar) ? scope : null;
}

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
