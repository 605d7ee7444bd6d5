/**
 * Whatever a model call failed with, as a `ModelCallError`: whether to ask again is decided by our own rule, not by the SDK's flag, and the text is
 * fit to be stored, shown and sent on.
 *
 * The text is the status and the provider's own message, masked and at most 300 code points; never that of a 401, 403 or 407, which like to repeat the
 * key. Bodies, headers, URLs and the error itself (as a cause) are left behind.
 */
import { ModelCallError } from '../../errors/run.errors.js';
import { isBlankText } from '../../contracts/text.js';
import { recordedText } from '../../engine/values/recorded-error.js';
import { thrownMessage, thrownProperty } from '../../engine/values/thrown-value.js';
import { truncateText } from '../../engine/values/truncate-text.js';
import { answeredError } from './answered-error.js';
import { networkCode } from './network-code.js';
import { retryAfterMs, type HeaderValue } from './retry-after.js';
import { UnusableReply } from './unusable-reply.js';

export interface FailedCall {
  /** The client's name, for the text. */
  name: string;
  /** Not masked when the provider's message repeats it. */
  modelId: string;
  /** Epoch ms. */
  now: number;
  /** The provider's package had been called: what its code throws may be about the answer. */
  isSent: boolean;
}

export function abortedError(name: string): ModelCallError {
  return new ModelCallError(`The request to the model ${name} was aborted.`, { retryable: true });
}

export function modelCallError(error: unknown, call: FailedCall): ModelCallError {
  if (error instanceof ModelCallError) return error;
  const answered = answeredError(error);
  const code = networkCode(error);
  // A connection that broke in the middle of a 200 is a network failure.
  if (code !== undefined && (answered === undefined || answered.status < 400)) {
    return new ModelCallError(`The model ${call.name} could not be reached or the connection broke (${code}).`, {
      retryable: true,
    });
  }
  if (answered !== undefined) {
    const { status, message, mayPass } = answered;
    const announced = retryAfterMs(
      thrownProperty(error, 'responseHeaders') as Record<string, HeaderValue> | undefined,
      call.now,
    );
    return new ModelCallError(`The model ${call.name} ${answerText(status)}${detail(message, status, call)}`, {
      status,
      retryable: mayPass,
      ...(announced === undefined ? {} : { retryAfterMs: announced }),
    });
  }
  return unanswered(error, call);
}

function answerText(status: number): string {
  return status < 400 ? `answered ${status}, but not with a reply` : `answered ${status}`;
}

/** No status and no network code. */
function unanswered(error: unknown, call: FailedCall): ModelCallError {
  const name = errorName(error);
  if (error instanceof UnusableReply) {
    return new ModelCallError(`The reply of the model ${call.name} could not be used: ${error.message}.`, {
      retryable: true,
    });
  }
  // Their messages repeat the body (MOD-9).
  if (UNUSABLE.has(name))
    return new ModelCallError(`The reply of the model ${call.name} could not be used (${name}).`, { retryable: true });
  if (name === 'AbortError' || name === 'TimeoutError' || name === 'ResponseAborted') {
    return new ModelCallError(`The request to the model ${call.name} was cut off (${name}).`, { retryable: true });
  }
  // With a cause it is fetch that failed, for a reason that is not known to pass.
  const isAboutAnswer = call.isSent && thrownProperty(error, 'cause') === undefined;
  return new ModelCallError(
    `The request to the model ${call.name} failed (${name})${detail(thrownMessage(error), 0, call)}`,
    {
      retryable: !PERMANENT.has(name) && (!FAULTS_OF_CODE.has(name) || isAboutAnswer),
    },
  );
}

/** Replies that another attempt may improve on. */
const UNUSABLE: ReadonlySet<string> = new Set([
  'AI_InvalidResponseDataError',
  'AI_NoContentGeneratedError',
  'AI_EmptyResponseBodyError',
  'AI_JSONParseError',
  'AI_TypeValidationError',
]);

/** Faults of the request: the same again fails the same way. Anything unrecognised is tried again, within the policy's bounds. */
const PERMANENT: ReadonlySet<string> = new Set([
  'AI_InvalidArgumentError',
  'AI_InvalidPromptError',
  'AI_LoadAPIKeyError',
  'AI_LoadSettingError',
  'AI_NoSuchModelError',
  'AI_TooManyEmbeddingValuesForCallError',
  'AI_UnsupportedFunctionalityError',
  'AI_UnsupportedModelVersionError',
]);

/** Thrown by a provider's package they are mostly about an answer that it did not expect (`choices: []`), which another attempt may improve on. */
const FAULTS_OF_CODE: ReadonlySet<string> = new Set([
  'TypeError',
  'ReferenceError',
  'RangeError',
  'SyntaxError',
  'URIError',
  'EvalError',
]);

function errorName(error: unknown): string {
  const name = thrownProperty(error, 'name');
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,99}$/.test(name) ? name : 'unknown error';
}

const SILENT: ReadonlySet<number> = new Set([401, 403, 407]);

function detail(message: string, status: number, { modelId }: FailedCall): string {
  if (SILENT.has(status) || isBlankText(message)) return '.';
  const oneLine = recordedText(message).replaceAll(/\s+/g, ' ').trim();
  const text = truncateText(withoutLongTokens(oneLine, modelId), 300);
  return /[.!?…]$/.test(text) ? `: ${text}` : `: ${text}.`;
}

/** Beyond the common forms: any unbroken token of letters and digits long enough to be a key. */
function withoutLongTokens(text: string, modelId: string): string {
  return text.replaceAll(/[A-Za-z0-9_+/=-]{24,}/g, (token) =>
    /\d/.test(token) && /[A-Za-z]/.test(token) && token !== modelId ? '[redacted]' : token,
  );
}
