import { AgentRunsError } from './agent-runs.error.js';

/** The caller must act, now: nothing was changed. */
abstract class RequestError extends AgentRunsError {
  readonly family = 'request';
}

/** No agent of this name and version is registered here; the message lists those that are. */
export class AgentNotFoundError extends RequestError {
  readonly code = 'AGENT_NOT_FOUND';
}

/** The ask was decided, or withdrawn, before; another decision came first. `details.status` says how. */
export class AlreadyDecidedError extends RequestError {
  readonly code = 'ALREADY_DECIDED';
}

/** Whoever asks may not do this: the ask needs a role they do not have (`details.approverRole`). */
export class ForbiddenError extends RequestError {
  readonly code = 'FORBIDDEN';
}

/** The run's status does not allow this (see the transition table). */
export class IllegalTransitionError extends RequestError {
  readonly code = 'ILLEGAL_TRANSITION';
}

/** The guardrail refused a message; it was not stored. */
export class InputRefusedError extends RequestError {
  readonly code = 'INPUT_REFUSED';
}

/** The ask expired before the decision came. */
export class InteractionExpiredError extends RequestError {
  readonly code = 'INTERACTION_EXPIRED';
}

/** The run has no interaction with this id. */
export class InteractionNotFoundError extends RequestError {
  readonly code = 'INTERACTION_NOT_FOUND';
}

/** A result or an answer that does not fit the schema it must fit. */
export class InvalidAnswerError extends RequestError {
  readonly code = 'INVALID_ANSWER';
}

/** Edited arguments that do not fit the tool. The ask stays open. */
export class InvalidArgumentsError extends RequestError {
  readonly code = 'INVALID_ARGUMENTS';
}

/** A cursor that this list did not give, or that lies ahead of the run. */
export class InvalidCursorError extends RequestError {
  readonly code = 'INVALID_CURSOR';
}

/** Bad input, refused before anything was written. `details.fields` names each failing field. */
export class InvalidRequestError extends RequestError {
  readonly code = 'INVALID_REQUEST';
}

/** The run waits for decisions that are still open; `details.interactions` names them. */
export class OpenInteractionsError extends RequestError {
  readonly code = 'OPEN_INTERACTIONS';
}

/** The operation is not one that may be resolved now. */
export class OperationConflictError extends RequestError {
  readonly code = 'OPERATION_CONFLICT';
}

/** The input is larger than the limit option allows, or than the database takes in one statement. */
export class PayloadTooLargeError extends RequestError {
  readonly code = 'PAYLOAD_TOO_LARGE';
}

/** The request id was used before with other input. */
export class RequestConflictError extends RequestError {
  readonly code = 'REQUEST_CONFLICT';
}

/** A run with this id exists. */
export class RunExistsError extends RequestError {
  readonly code = 'RUN_EXISTS';
}

/** A live worker owns the run. `details` has `owner` and `expiresAt`. */
export class RunLeasedError extends RequestError {
  readonly code = 'RUN_LEASED';
}

/** No run has this id. */
export class RunNotFoundError extends RequestError {
  readonly code = 'RUN_NOT_FOUND';
}

/** The session has an unfinished run and `enqueue` was not given. */
export class SessionBusyError extends RequestError {
  readonly code = 'SESSION_BUSY';
}

/** `maxPendingRuns` runs are waiting already. `details.retryAfterMs` is a hint. */
export class TooManyPendingError extends RequestError {
  readonly code = 'TOO_MANY_PENDING';
  override readonly retryable = true;
}

/** No live worker can execute this run's agent version and definition. */
export class VersionUnavailableError extends RequestError {
  readonly code = 'VERSION_UNAVAILABLE';
}
