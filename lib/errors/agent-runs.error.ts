const BRAND = Symbol.for('nestjs-agent-runs:error');

/**
 * Who must act: the developer (`configuration`, at boot), the caller (`request`), nobody yet (`run`: recorded in the
 * run), the machine (`store`).
 */
export type ErrorFamily = 'configuration' | 'request' | 'run' | 'store';

/** What an error carries besides its message. */
export interface AgentRunsErrorOptions {
  /** Chosen facts that may be shown to a caller. */
  details?: Record<string, unknown>;
  /** What led to it; for the log, never shown to a caller. */
  cause?: unknown;
}

/**
 * The one base of all errors of this package. Families by who must act: configuration (the developer, at boot),
 * request (the caller, now), run (recorded in the run), store (the machine). Recognised by brand, never by
 * `instanceof`: a host may have two copies of the package.
 */
export abstract class AgentRunsError extends Error {
  /** What happened, in one word of a closed list. */
  abstract readonly code: ErrorCode;
  /** Who must act. */
  abstract readonly family: ErrorFamily;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean = false;
  /** Chosen facts that may be shown to a caller; empty = none. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly [BRAND] = true;

  constructor(message: string, options: AgentRunsErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.details = options.details ?? {};
  }

  /** What `AgentRunsHttpModule` and `AgentRunsExceptionFilter` answer; 500 for what is not meant for a caller. */
  get httpStatus(): number {
    return HTTP_STATUS_OF[this.code];
  }

  /** Whether a value is an error of this package, whichever copy made it. */
  static is(value: unknown, code?: ErrorCode): value is AgentRunsError {
    return (
      typeof value === 'object' &&
      value !== null &&
      BRAND in value &&
      (code === undefined || (value as AgentRunsError).code === code)
    );
  }
}

/**
 * The closed list of codes, each with the HTTP status it is answered with. 500 = not meant for a caller: a fault of the application, or recorded in a run
 * only. docs/errors.md has a heading for each.
 */
export const HTTP_STATUS_OF = {
  // configuration
  INVALID_CONFIGURATION: 500,
  // request
  INVALID_REQUEST: 400,
  INVALID_CURSOR: 400,
  FORBIDDEN: 403,
  RUN_NOT_FOUND: 404,
  INTERACTION_NOT_FOUND: 404,
  AGENT_NOT_FOUND: 404,
  SESSION_BUSY: 409,
  REQUEST_CONFLICT: 409,
  RUN_EXISTS: 409,
  ILLEGAL_TRANSITION: 409,
  RUN_LEASED: 409,
  ALREADY_DECIDED: 409,
  OPEN_INTERACTIONS: 409,
  OPERATION_CONFLICT: 409,
  VERSION_UNAVAILABLE: 409,
  INTERACTION_EXPIRED: 410,
  PAYLOAD_TOO_LARGE: 413,
  INVALID_ANSWER: 422,
  INVALID_ARGUMENTS: 422,
  INPUT_REFUSED: 422,
  TOO_MANY_PENDING: 429,
  // run
  INSTRUCTIONS_FAILED: 500,
  MODEL_CALL_FAILED: 500,
  MODEL_REFUSED: 500,
  OUTPUT_TRUNCATED: 500,
  MODEL_RETRIES_EXHAUSTED: 500,
  MAX_TURNS_EXCEEDED: 500,
  RUN_TIMED_OUT: 500,
  LIMIT_EXCEEDED: 500,
  USAGE_UNKNOWN: 500,
  BUDGET_DENIED: 500,
  APPROVAL_DENIED: 500,
  QUESTION_NOT_ANSWERED: 500,
  TOOL_DENIED: 500,
  TOOL_TIMED_OUT: 500,
  TOOL_FAILED: 500,
  UNKNOWN_TOOL: 500,
  UNSERIALISABLE_RESULT: 500,
  // store
  STORE_UNAVAILABLE: 503,
  STORE_BROKEN: 503,
  STORE_CONFLICT: 503,
  STORE_LOCKED: 503,
  NEWER_SCHEMA: 503,
  STREAM_INTERRUPTED: 503,
  SEQUENCE_CONFLICT: 500,
  JOURNAL_CORRUPT: 500,
  FENCED: 500,
} as const;

/** The code of an error. The list is closed; docs/errors.md says about each what to do. */
export type ErrorCode = keyof typeof HTTP_STATUS_OF;

/** Every code an error of this package can have. */
export const ERROR_CODES = Object.keys(HTTP_STATUS_OF) as readonly ErrorCode[];
