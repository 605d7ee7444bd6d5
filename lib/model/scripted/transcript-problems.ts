import type { AssistantMessage, Message, ToolResultPart } from '../../contracts/message.js';
import { isBlankText } from '../../contracts/text.js';

/**
 * What strict providers refuse about a transcript: a call without its result right after it, or a result without a
 * call (`results`), an id twice (`ids`), text with nothing to read (`blank`), a lone surrogate (`unicode`). An adapter
 * repairs the last two on the way out.
 */
export type TranscriptCheck = 'results' | 'ids' | 'blank' | 'unicode';

/** Every check that a scripted model can make. */
export const TRANSCRIPT_CHECKS: readonly TranscriptCheck[] = ['results', 'ids', 'blank', 'unicode'];

/** @returns one sentence per problem, naming the message by its index; empty for a transcript every provider accepts */
export function problemsOf(
  messages: readonly Message[],
  checks: readonly TranscriptCheck[] = TRANSCRIPT_CHECKS,
): string[] {
  return [
    ...(checks.includes('results') ? resultProblems(messages) : []),
    ...(checks.includes('ids') ? idProblems(messages) : []),
    ...(checks.includes('blank') ? messages.flatMap(blankProblems) : []),
    ...(checks.includes('unicode') ? messages.flatMap(unicodeProblems) : []),
  ];
}

function callIds(message: AssistantMessage): string[] {
  return message.content.flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []));
}

function resultProblems(messages: readonly Message[]): string[] {
  const problems: string[] = [];
  let owed: string[] = [];
  let owedBy = -1;
  messages.forEach((message, index) => {
    if (message.role === 'tool') {
      for (const result of message.content) problems.push(...resultProblem(result, owed, index));
      return;
    }
    problems.push(...missing(owed, owedBy, `message ${index} (${message.role})`));
    owed = message.role === 'assistant' ? callIds(message) : [];
    owedBy = index;
  });
  return [...problems, ...missing(owed, owedBy, 'the end')];
}

/** Strikes the call off the list of those whose result is owed. */
function resultProblem(result: ToolResultPart, owed: string[], index: number): string[] {
  const place = owed.indexOf(result.callId);
  if (place < 0) return [`message ${index}: the result of ${result.callId} has no open call right before it`];
  const [expected] = owed;
  owed.splice(place, 1);
  return place === 0 ? [] : [`message ${index}: the result of ${result.callId} comes before that of ${expected}`];
}

function missing(owed: readonly string[], owedBy: number, before: string): string[] {
  return owed.map((id) => `message ${owedBy}: the call ${id} has no result before ${before}`);
}

function idProblems(messages: readonly Message[]): string[] {
  const seen = new Set<string>();
  return messages.flatMap((message, index) => {
    if (message.role !== 'assistant') return [];
    return callIds(message).flatMap((id) => {
      if (id === '') return [`message ${index}: a call has no id`];
      if (seen.has(id)) return [`message ${index}: the call id ${id} was used before`];
      seen.add(id);
      return [];
    });
  });
}

function blankProblems(message: Message, index: number): string[] {
  const texts: string[] =
    message.role === 'system'
      ? [message.content]
      : message.content.flatMap((part) => {
          if (part.type === 'text') return [part.text];
          return part.type === 'tool-result' && typeof part.output === 'string' ? [part.output] : [];
        });
  const isEmpty = message.content.length === 0 && message.role !== 'system';
  return [
    ...(isEmpty ? [`message ${index}: the ${message.role} message is empty`] : []),
    ...texts.filter(isBlankText).map(() => `message ${index}: a text of the ${message.role} message is blank`),
  ];
}

function unicodeProblems(message: Message, index: number): string[] {
  return isWellFormedDeep(message.content)
    ? []
    : [`message ${index}: a text of the ${message.role} message has a lone surrogate`];
}

function isWellFormedDeep(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, item]) => key.isWellFormed() && isWellFormedDeep(item));
}
