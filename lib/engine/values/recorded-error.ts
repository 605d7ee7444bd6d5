import type { RecordedError } from '../../contracts/journal-entry.js';
import type { RecordedText } from '../../contracts/text.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { maskSecrets } from './mask-secrets.js';
import { truncateText, wellFormedText } from './plain-text.js';

/** Code points of a stored message. */
export const MAX_ERROR_MESSAGE = 4_000;
/** Looked at before masking and cutting, so that a huge message costs little. */
const MAX_READ = 16_000;

/**
 * Any thrown value as an error that may be stored and shown. An allow-list: class name, code, message, and for this
 * package's own errors status and retryable. Never stack, cause, config, request, headers or any other property, and
 * never a serialised exception.
 *
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

const MAX_MESSAGE = 500;
const MAX_FRAMES = 12;

/**
 * A thrown value for a log: class, code, message and frames, and the same without frames for its cause. Masked and
 * bounded like all recorded text: drivers and clients put addresses, passwords and bodies into their messages.
 */
export function thrownStack(thrown: unknown): RecordedText {
  const cause = thrownProperty(thrown, 'cause');
  const lines = [headOf(thrown), ...framesOf(thrown), ...(cause == null ? [] : [`caused by ${headOf(cause)}`])];
  return recordedText(lines.join('\n'));
}

/** The class of a thrown value, as far as it tells. */
export function thrownName(thrown: unknown): string {
  return recordedError(thrown, '').name ?? 'not an error';
}

function headOf(thrown: unknown): string {
  const { name = 'Error', code, message } = recordedError(thrown, '');
  // On one line: a message cannot pass for frames, nor for another entry of the log.
  return `${name}${code === '' ? '' : ` ${code}`}: ${truncateText(message, MAX_MESSAGE).replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')}`;
}

function framesOf(thrown: unknown): string[] {
  const stack = thrownProperty(thrown, 'stack');
  if (typeof stack !== 'string') return [];
  const message = thrownMessage(thrown);
  const at = stack.indexOf(message);
  return stack
    .slice(at < 0 ? 0 : at + message.length, 32_000 + (at < 0 ? 0 : at + message.length))
    .split('\n')
    .filter((line) => /^\s{1,8}at /.test(line))
    .slice(0, MAX_FRAMES)
    .map((line) => truncateText(line.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' '), 300));
}

/**
 * Reads an exception that may be anything: `throw undefined`, a Proxy, an Error whose message is a number or whose
 * getter throws. Never throws itself, and looks at nothing but the property it is asked for.
 *
 * One property of a thrown value; undefined when it cannot be read.
 */
export function thrownProperty(thrown: unknown, property: string): unknown {
  if ((typeof thrown !== 'object' && typeof thrown !== 'function') || thrown === null) return undefined;
  try {
    return (thrown as Record<string, unknown>)[property];
  } catch {
    return undefined;
  }
}

/** The words of a thrown value, unbounded; never its serialised form. */
export function thrownMessage(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown === '' ? 'An empty text was thrown.' : thrown;
  if (thrown === null || thrown === undefined) return `${String(thrown)} was thrown.`;
  if (typeof thrown !== 'object' && typeof thrown !== 'function') return `${String(thrown)} was thrown.`;
  const message = thrownProperty(thrown, 'message');
  if (typeof message === 'string' && message !== '') return message;
  if (['number', 'boolean', 'bigint', 'symbol'].includes(typeof message)) return String(message);
  return message === ''
    ? 'An error without a message was thrown.'
    : `${typeof thrown === 'function' ? 'A function' : 'An object'} without a message was thrown.`;
}

/**
 * HTTP statuses after which the same request may succeed: timeouts, conflicts, throttling, and the server's own
 * failures (529 = overloaded).
 */
const PASSING: ReadonlySet<number> = new Set([408, 409, 425, 429]);

export function isRetryableStatus(status: number): boolean {
  return PASSING.has(status) || (status >= 500 && status <= 599);
}
