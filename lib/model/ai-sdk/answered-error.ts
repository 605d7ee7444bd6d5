/**
 * The answer behind an error: its status, the provider's message, and whether that answer is final whatever its status. Recognised by structure
 * (`statusCode` as the AI SDK's errors have it). Some gateways answer 200 with an error object inside: its code or type is then the status.
 */
import { isRetryableStatus } from '../../engine/values/retryable-status.js';
import { thrownMessage, thrownProperty } from '../../engine/values/thrown-value.js';

export interface AnsweredError {
  status: number;
  message: string;
  /** Out of quota or context: asking again is useless even where the status says it may help. */
  isPermanent: boolean;
}

export function answeredError(error: unknown): AnsweredError | undefined {
  const status = thrownProperty(error, 'statusCode') ?? thrownProperty(error, 'status');
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 100 || status > 599) return undefined;
  const inner = innerError(error);
  const message = inner.message ?? thrownMessage(error);
  const effective = status < 400 ? (inner.status ?? status) : status;
  return { status: effective, message, isPermanent: isFinal(inner.words, message, effective) };
}

interface InnerError {
  message?: string;
  status?: number;
  /** code, type and status texts */
  words: string[];
}

/** The `error` object of the answer, as the SDK parsed it or as text. */
function innerError(error: unknown): InnerError {
  const object =
    errorObject(thrownProperty(error, 'data')) ?? errorObject(parsed(thrownProperty(error, 'responseBody')));
  if (object === undefined) return { words: [] };
  const { message, code, type, status } = object;
  const words = [code, type, status].filter((word): word is string => typeof word === 'string');
  const numbers = [code, status]
    .map(Number)
    .filter((number) => Number.isInteger(number) && number >= 400 && number <= 599);
  const byWord = words.map((word) => STATUS_BY_WORD.get(word.toLowerCase())).find((number) => number !== undefined);
  const found = numbers[0] ?? byWord;
  return {
    words,
    ...(typeof message === 'string' ? { message } : {}),
    ...(found === undefined ? {} : { status: found }),
  };
}

function errorObject(body: unknown): Record<string, unknown> | undefined {
  const inner = thrownProperty(body, 'error');
  if (typeof inner === 'string') return { message: inner };
  return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : undefined;
}

function parsed(body: unknown): unknown {
  if (typeof body !== 'string' || body.length > 100_000) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** What providers call their errors, where no status says it. */
const STATUS_BY_WORD: ReadonlyMap<string, number> = new Map([
  ['invalid_request', 400],
  ['invalid_request_error', 400],
  ['invalid_argument', 400],
  ['context_length_exceeded', 400],
  ['authentication_error', 401],
  ['unauthenticated', 401],
  ['invalid_api_key', 401],
  ['billing_error', 402],
  ['insufficient_quota', 402],
  ['permission_error', 403],
  ['permission_denied', 403],
  ['not_found', 404],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['timeout_error', 408],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['resource_exhausted', 429],
  ['too_many_requests', 429],
  ['api_error', 500],
  ['internal', 500],
  ['internal_error', 500],
  ['internal_server_error', 500],
  ['server_error', 500],
  ['unavailable', 503],
  ['service_unavailable', 503],
  ['deadline_exceeded', 504],
  ['overloaded', 529],
  ['overloaded_error', 529],
]);

const FINAL_WORDS: ReadonlySet<string> = new Set([
  'insufficient_quota',
  'billing_error',
  'context_length_exceeded',
  'content_filter',
  'content_policy_violation',
]);

function isFinal(words: readonly string[], message: string, status: number): boolean {
  if (words.some((word) => FINAL_WORDS.has(word.toLowerCase()))) return true;
  // Throttling speaks of tokens too, and passes.
  return (
    status !== 429 &&
    isRetryableStatus(status) &&
    /maximum context length|context window|prompt is too long|input is too long/i.test(message)
  );
}
