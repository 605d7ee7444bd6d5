import type { FinishReason } from '../../contracts/journal-entry.js';

/**
 * Words of providers, lower-cased with `-`, `/`, `:` and blanks as `_`. The list is closed: a word that is not here is `other`, which is a failed attempt.
 * docs/guide/models.md has it as a table, with the providers.
 */
export const PROVIDER_WORDS: Readonly<Record<Exclude<FinishReason, 'other' | 'unknown'>, readonly string[]>> = {
  stop: ['stop', 'end_turn', 'stop_sequence', 'completed', 'complete', 'eos', 'eos_token', 'normal'],
  'tool-calls': ['tool_calls', 'tool_call', 'tool_use', 'function_call', 'requires_action'],
  pause: ['pause_turn', 'compaction'],
  length: [
    'length',
    'max_tokens',
    'model_length',
    'max_output_tokens',
    'incomplete_max_output_tokens',
    'max_completion_tokens',
    'token_limit',
    'continuation',
    'model_context_window_exceeded',
  ],
  refusal: ['refusal', 'refused'],
  'content-filter': [
    'content_filter',
    'content_filtered',
    'incomplete_content_filter',
    'sensitive',
    'safety',
    'image_safety',
    'guardrail',
    'guardrails',
    'guardrail_intervened',
    'model_armor',
    'prohibited_content',
    'image_prohibited_content',
    'blocklist',
    'spii',
    'recitation',
    'image_recitation',
    'error_toxic',
  ],
  error: [
    'error',
    'failed',
    'abort',
    'aborted',
    'cancelled',
    'canceled',
    'network_error',
    'timeout',
    'time_limit',
    'insufficient_system_resource',
    'repetition',
    'malformed_function_call',
    'malformed_tool_use',
    'malformed_response',
    'malformed_model_output',
    'unexpected_tool_call',
    'too_many_tool_calls',
    'missing_thought_signature',
    'language',
    'no_image',
    'image_other',
  ],
};

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ...Object.entries(PROVIDER_WORDS).flatMap(([reason, words]) =>
    words.map((word): [string, FinishReason] => [word, reason as FinishReason]),
  ),
  ['unknown', 'unknown'],
]);

/** A provider's own word wins over the package's translation where it says that the reply did not end well: not every package knows it. */
const DECISIVE: ReadonlySet<FinishReason> = new Set<FinishReason>([
  'pause',
  'length',
  'refusal',
  'content-filter',
  'error',
]);

export interface AiSdkEnding {
  reason: FinishReason;
  /** The provider's own word; undefined when it gave none. */
  word?: string;
}

/**
 * Why a reply ended: a text in v2, `{ unified, raw }` in v3 and v4.
 * @param rawWord the provider's word where the specification has no place for it
 */
export function endingFromAiSdk(finishReason: unknown, rawWord?: unknown): AiSdkEnding {
  const isPair = typeof finishReason === 'object' && finishReason !== null;
  const { unified, raw } = isPair ? (finishReason as Record<string, unknown>) : { unified: finishReason, raw: rawWord };
  const said = reasonOf(unified);
  const original = reasonOf(raw);
  if (original === undefined) {
    // In v3 and v4 `other` without a word is how packages translate none; in v2 it is a word that they do not tell.
    const isMissing = said === undefined || said === 'unknown' || (isPair && said === 'other');
    return isMissing ? { reason: 'unknown' } : { reason: said, ...(typeof unified === 'string' && { word: unified }) };
  }
  const word = raw as string;
  if (DECISIVE.has(original)) return { reason: original, word };
  // A provider that ends normally with a filter's verdict is one whose model declined by itself (a refusal beside the text).
  if (said === 'content-filter' && original === 'stop') return { reason: 'refusal', word };
  return { reason: said === undefined || said === 'other' || said === 'unknown' ? original : said, word };
}

function reasonOf(word: unknown): FinishReason | undefined {
  if (typeof word !== 'string' || word === '') return undefined;
  return REASONS.get(word.toLowerCase().replaceAll(/[-/:. ]+/g, '_')) ?? 'other';
}
