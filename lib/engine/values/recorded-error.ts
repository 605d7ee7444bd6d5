/**
 * Any thrown value as an error that may be stored and shown. An allow-list: class name, code, message, and for this
 * package's own errors status and retryable. Never stack, cause, config, request, headers or any other property, and
 * never a serialised exception.
 */
import type { RecordedError } from '../../contracts/journal-entry.js';
import type { RecordedText } from '../../contracts/text.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { maskSecrets } from './mask-secrets.js';
import { thrownMessage, thrownProperty } from './thrown-value.js';
import { truncateText } from './truncate-text.js';
import { wellFormedText } from './well-formed.js';

/** Code points of a stored message. */
export const MAX_ERROR_MESSAGE = 4_000;
/** Looked at before masking and cutting, so that a huge message costs little. */
const MAX_READ = 16_000;

/**
 * @param thrown whatever was thrown or rejected with
 * @param fallbackCode used when the value has no code of its own, e.g. `TOOL_FAILED`
 */
export function recordedError(thrown: unknown, fallbackCode: string): RecordedError {
  const recorded: RecordedError = {
    code: codeOf(thrown) ?? fallbackCode,
    message: recordedText(thrownMessage(thrown)),
  };
  const name = thrownProperty(thrown, 'name');
  if (typeof name === 'string' && /^[A-Za-z_$][\w$.:-]{0,99}$/.test(name)) recorded.name = name;
  if (!isOwnError(thrown)) return recorded;
  const status = thrownProperty(thrown, 'status');
  if (typeof status === 'number' && Number.isInteger(status)) recorded.status = status;
  const retryable = thrownProperty(thrown, 'retryable');
  if (typeof retryable === 'boolean') recorded.retryable = retryable;
  return recorded;
}

/** An error of our own making. @param message may quote what others said */
export function recordedFailure(
  code: string,
  message: string,
  facts: Pick<RecordedError, 'status' | 'retryable'> = {},
): RecordedError {
  return { code, message: recordedText(message), ...facts };
}

/** The one way to a {@link RecordedText}: masked, well-formed, at most {@link MAX_ERROR_MESSAGE} code points. */
export function recordedText(text: string): RecordedText {
  return truncateText(maskSecrets(wellFormedText(text.slice(0, MAX_READ))), MAX_ERROR_MESSAGE) as RecordedText;
}

function codeOf(thrown: unknown): string | undefined {
  const code = thrownProperty(thrown, 'code');
  if (typeof code === 'number' && Number.isFinite(code)) return String(code);
  return typeof code === 'string' && /^[A-Za-z0-9_.:-]{1,64}$/.test(code) ? code : undefined;
}

function isOwnError(thrown: unknown): boolean {
  try {
    return AgentRunsError.is(thrown);
  } catch {
    return false;
  }
}
