/** What a model is told about a call of its: never blank, and in words that say what happened without calling a refusal a malfunction. */
import type { JsonValue } from '../../contracts/json.js';
import type { ToolOutcome } from '../../contracts/message.js';
import { isBlankText } from '../../contracts/text.js';
import { wellFormedJson, wellFormedText } from '../../engine/values/well-formed.js';
import type { AiSdkToolOutput } from './ai-sdk-types.js';

export const EMPTY_RESULT = '(empty result)';

/** Said when the recorded output has no words; and put before words that leave the outcome unsaid. */
const WORDS: Readonly<Record<Exclude<ToolOutcome, 'success'>, { alone: string; says?: RegExp; before?: string }>> = {
  error: { alone: 'The tool failed.' },
  denied: {
    alone: 'This call was denied and did not run.',
    says: /den(?:y|ied)|refus|reject|declin|not allowed|expired/i,
    before: 'Denied: ',
  },
  unknown: {
    alone: 'The outcome of this call is unknown: it was interrupted and may or may not have taken effect.',
    says: /unknown/i,
    before: 'Outcome unknown: ',
  },
  invalid_arguments: { alone: 'The arguments were not valid. The tool did not run.' },
  unknown_tool: { alone: 'There is no tool of this name.' },
  cancelled: { alone: 'This call was cancelled.' },
  not_executed: { alone: 'This call was not executed.' },
};

/**
 * Success: text as text, anything else as JSON (null is `null`). Everything else: words, marked as an error for the provider, except a refusal by a
 * person, which is an ordinary answer.
 */
export function outputToAiSdk(outcome: ToolOutcome, output: JsonValue): AiSdkToolOutput {
  if (outcome === 'success') {
    if (typeof output !== 'string') return { type: 'json', value: wellFormedJson(output) };
    return { type: 'text', value: isBlankText(output) ? EMPTY_RESULT : wellFormedText(output) };
  }
  const { alone, says, before } = WORDS[outcome];
  // Before it becomes text: as text a lone surrogate would be hidden in an escape.
  const repaired = wellFormedJson(output);
  const text = typeof repaired === 'string' ? repaired : JSON.stringify(repaired);
  const isEmpty = isBlankText(text) || output === null;
  const value = isEmpty ? alone : says === undefined || says.test(text) ? text : `${before}${text}`;
  return { type: outcome === 'denied' ? 'text' : 'error-text', value };
}
