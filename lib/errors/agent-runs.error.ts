/**
 * The one base of all errors of this package. Families by who must act: configuration (the developer, at boot), request (the caller, now),
 * run (recorded in the run), store (the machine). Recognised by brand, never by `instanceof`: a host may have two copies of the package.
 */
import { HTTP_STATUS_OF, type ErrorCode } from './error-code.js';

const BRAND = Symbol.for('nestjs-agent-runs:error');

export type ErrorFamily = 'configuration' | 'request' | 'run' | 'store';

export interface AgentRunsErrorOptions {
  /** Chosen facts that may be shown to a caller. */
  details?: Record<string, unknown>;
  cause?: unknown;
}

export abstract class AgentRunsError extends Error {
  abstract readonly code: ErrorCode;
  abstract readonly family: ErrorFamily;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean = false;
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
