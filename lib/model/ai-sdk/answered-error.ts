import { isRetryableStatus, thrownMessage, thrownProperty } from '../../engine/values/recorded-error.js';

export interface AnsweredError {
  status: number;
  message: string;
  /** Whether the same request may succeed later: by the provider's code and words where they say so, else by the status. */
  mayPass: boolean;
}

/**
 * The answer behind an error: its status, the provider's message, and whether that answer is final whatever its status. Recognised by structure
 * (`statusCode` as the AI SDK's errors have it). Some gateways answer 200 with an error object inside: its code or type is then the status.
 */
export function answeredError(error: unknown): AnsweredError | undefined {
  const status = thrownProperty(error, 'statusCode') ?? thrownProperty(error, 'status');
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 100 || status > 599) return undefined;
  const inner = innerError(error);
  const message = inner.message ?? thrownMessage(error);
  const effective = status < 400 ? (inner.status ?? status) : status;
  return { status: effective, message, mayPass: mayPass(inner, message, effective) };
}

interface InnerError {
  message?: string;
  status?: number;
  /** code, type and status texts */
  words: string[];
}

/** The `error` object of the answer: as text, or as the SDK parsed it, which leaves out what its schema does not know. */
function innerError(error: unknown): InnerError {
  const object =
    errorObject(parsed(thrownProperty(error, 'responseBody'))) ?? errorObject(thrownProperty(error, 'data'));
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

/** `{ error: { message, … } }` and what is given instead: a text, a list of one (Gemini), the fields at the root (vLLM), `detail` (FastAPI). */
function errorObject(given: unknown): Record<string, unknown> | undefined {
  const body: unknown = Array.isArray(given) ? given[0] : given;
  if (typeof body !== 'object' || body === null) return undefined;
  const { detail, message, object, promptFeedback, choices } = body as Record<string, unknown>;
  const error = thrownProperty(body, 'error') ?? (Array.isArray(choices) && thrownProperty(choices[0], 'error'));
  if (typeof error === 'string') return { ...body, message: error };
  if (typeof error === 'object' && error !== null) return error as Record<string, unknown>;
  const blocked = thrownProperty(promptFeedback, 'blockReason');
  if (typeof blocked === 'string') return { message: `the prompt was blocked (${blocked})`, code: 'content_filter' };
  if (detail !== undefined) return { ...body, message: detailText(detail) };
  return typeof message === 'string' && (object === 'error' || !('choices' in body))
    ? (body as Record<string, unknown>)
    : undefined;
}

function detailText(detail: unknown): string | undefined {
  if (!Array.isArray(detail)) return typeof detail === 'string' ? detail : undefined;
  const texts = detail.slice(0, 20).map((problem: unknown) => {
    const [place, message] = [thrownProperty(problem, 'loc'), thrownProperty(problem, 'msg')];
    return `${Array.isArray(place) ? `${place.join('.')}: ` : ''}${typeof message === 'string' ? message : ''}`;
  });
  return texts.join('; ');
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

/** The model's own output could not be read as a call (Groq): the request is fine, another attempt draws another output. */
const PASSING_WORDS: ReadonlySet<string> = new Set(['tool_use_failed', 'output_parse_failed', 'json_validate_failed']);

function mayPass({ words: given, message: said }: InnerError, message: string, status: number): boolean {
  const words = given.map((word) => word.toLowerCase());
  if (words.some((word) => FINAL_WORDS.has(word))) return false;
  if (words.some((word) => PASSING_WORDS.has(word))) return true;
  // A request beyond what the limit allows in all is throttled for ever.
  if (/request (?:is )?too large/i.test(message)) return false;
  // A 200 with nothing but an error's text: only words that speak of now promise something.
  if (status < 400)
    return said === undefined || /overload|try again|temporar|timed? ?out|unavailable|too many requests/i.test(said);
  if (!isRetryableStatus(status)) return false;
  // Throttling speaks of tokens too, and passes.
  return status === 429 || !/maximum context length|context window|prompt is too long|input is too long/i.test(message);
}
