/**
 * Why a reply ended. v2 gives a text, v3 and v4 `{ unified, raw }`. The provider's raw word wins where it says that the reply is cut or refused, for then
 * its calls must not run and not every provider's package translates its word.
 */
import type { FinishReason } from '../../contracts/journal-entry.js';

/** Words in use, lower-cased with `-`, `/`, `:` and blanks as `_`. */
const WORDS: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['completed', 'stop'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['max_output_tokens', 'length'],
  ['incomplete_max_output_tokens', 'length'],
  ['max_completion_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_calls', 'tool-calls'],
  ['tool_use', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['refusal', 'refusal'],
  ['refused', 'refusal'],
  ['content_filter', 'content-filter'],
  ['content_filtered', 'content-filter'],
  ['incomplete_content_filter', 'content-filter'],
  ['safety', 'content-filter'],
  ['image_safety', 'content-filter'],
  ['guardrail', 'content-filter'],
  ['guardrails', 'content-filter'],
  ['guardrail_intervened', 'content-filter'],
  ['prohibited_content', 'content-filter'],
  ['blocklist', 'content-filter'],
  ['spii', 'content-filter'],
  ['recitation', 'content-filter'],
  ['error', 'error'],
  ['other', 'other'],
  ['unknown', 'unknown'],
]);

const DECISIVE: ReadonlySet<FinishReason> = new Set<FinishReason>(['length', 'refusal', 'content-filter']);

export function finishReasonFromAiSdk(finishReason: unknown): FinishReason {
  const isPair = typeof finishReason === 'object' && finishReason !== null;
  const { unified, raw } = isPair
    ? (finishReason as Record<string, unknown>)
    : { unified: finishReason, raw: undefined };
  const said = wordOf(unified);
  const original = wordOf(raw);
  if (original !== undefined && DECISIVE.has(original)) return original;
  // A provider that ends normally with a filter's verdict is one whose model declined by itself (a refusal beside the text).
  if (said === 'content-filter' && original === 'stop') return 'refusal';
  return said ?? original ?? 'unknown';
}

function wordOf(word: unknown): FinishReason | undefined {
  if (typeof word !== 'string' || word === '') return undefined;
  return WORDS.get(word.toLowerCase().replaceAll(/[-/:. ]+/g, '_')) ?? 'other';
}
