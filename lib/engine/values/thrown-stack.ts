import type { RecordedText } from '../../contracts/text.js';
import { recordedError, recordedText } from './recorded-error.js';
import { thrownMessage, thrownProperty } from './thrown-value.js';
import { truncateText } from './truncate-text.js';

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
