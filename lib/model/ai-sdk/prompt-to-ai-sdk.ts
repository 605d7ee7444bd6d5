import type {
  AssistantMessage,
  AssistantPart,
  FilePart,
  Message,
  TextPart,
  ToolMessage,
  ToolOutcome,
  UserMessage,
} from '../../contracts/message.js';
import type { ModelRequest } from '../../contracts/ports/model-client.port.js';
import { isBlankText } from '../../contracts/text.js';
import { wellFormedJson, wellFormedText } from '../../engine/values/plain-text.js';
import type {
  AiSdkFileData,
  AiSdkMessage,
  AiSdkPromptPart,
  AiSdkSpecification,
  AiSdkToolOutput,
} from './ai-sdk-types.js';
import { opaqueToAiSdk } from './opaque-part.js';
import type { JsonValue } from '../../contracts/json.js';

export interface AiSdkTarget {
  specification: AiSdkSpecification;
  /** The provider's name, as opaque parts remember it. */
  provider: string;
}

/** Stands where a message would have no text left that a provider accepts. */
export const EMPTY_MESSAGE = '(empty message)';

/**
 * Our transcript as an AI SDK prompt. Promises what strict providers ask for: no blank text, no empty message, call
 * inputs that are objects, a result with words in it for every call, well-formed UTF-16. What is opaque to us goes
 * back as it came, or not at all.
 */
export function promptToAiSdk(
  request: Pick<ModelRequest, 'instructions' | 'messages'>,
  target: AiSdkTarget,
): AiSdkMessage[] {
  const prompt: AiSdkMessage[] = [];
  if (!isBlankText(request.instructions))
    prompt.push({ role: 'system', content: wellFormedText(request.instructions) });
  for (const message of request.messages) {
    const converted = messageToAiSdk(message, target);
    if (converted !== null) prompt.push(withOptions(converted, message));
  }
  return prompt;
}

function messageToAiSdk(message: Message, target: AiSdkTarget): AiSdkMessage | null {
  switch (message.role) {
    case 'system':
      return isBlankText(message.content) ? null : { role: 'system', content: wellFormedText(message.content) };
    case 'user':
      return { role: 'user', content: userContent(message, target) };
    case 'assistant':
      return { role: 'assistant', content: assistantContent(message, target) };
    case 'tool':
      return message.content.length === 0 ? null : { role: 'tool', content: toolContent(message) };
  }
}

function userContent(message: UserMessage, target: AiSdkTarget): AiSdkPromptPart[] {
  const content = message.content
    .filter((part) => part.type !== 'text' || !isBlankText(part.text))
    .map((part) => (part.type === 'text' ? textPart(part) : filePart(part, target)));
  return content.length > 0 ? content : [{ type: 'text', text: EMPTY_MESSAGE }];
}

function assistantContent(message: AssistantMessage, target: AiSdkTarget): AiSdkPromptPart[] {
  const content = message.content.flatMap((part) => assistantPart(part, target) ?? []);
  // Reasoning and files alone are dropped by some converters, which leaves an empty message on the wire.
  const speaks = content.some(({ type }) => type !== 'reasoning' && type !== 'reasoning-file' && type !== 'file');
  return speaks ? content : [...content, { type: 'text', text: EMPTY_MESSAGE }];
}

function assistantPart(part: AssistantPart, target: AiSdkTarget): AiSdkPromptPart | null {
  switch (part.type) {
    case 'text':
      // With options it is a provider's own block (a signature on an empty text): it goes back as it came.
      return isBlankText(part.text) && part.providerOptions === undefined ? null : textPart(part);
    case 'reasoning':
      if (part.providerOptions === undefined && isBlankText(part.text)) return null;
      // Signed reasoning must not change by a byte.
      return withOptions(
        { type: 'reasoning', text: part.providerOptions === undefined ? wellFormedText(part.text) : part.text },
        part,
      );
    case 'file':
      return filePart(part, target);
    case 'tool-call':
      return withOptions(
        // Arguments that were no object are told by the call's result; providers want an object here.
        {
          type: 'tool-call',
          toolCallId: part.callId,
          toolName: wellFormedText(part.name),
          input: wellFormedJson(part.arguments ?? {}),
        },
        part,
      );
    case 'opaque':
      return opaqueToAiSdk(part.value, target);
  }
}

function toolContent(message: ToolMessage): AiSdkPromptPart[] {
  return message.content.map((part) => ({
    type: 'tool-result',
    toolCallId: part.callId,
    toolName: wellFormedText(part.name),
    output: outputToAiSdk(part.outcome, part.output),
  }));
}

function textPart(part: TextPart): AiSdkPromptPart {
  return withOptions({ type: 'text', text: wellFormedText(part.text) }, part);
}

function filePart(part: FilePart, { specification }: AiSdkTarget): AiSdkPromptPart {
  const filename = part.filename === undefined ? {} : { filename: wellFormedText(part.filename) };
  return withOptions(
    { type: 'file', mediaType: part.mediaType, data: fileData(part, specification), ...filename },
    part,
  );
}

function fileData(part: FilePart, specification: AiSdkSpecification): AiSdkFileData {
  if (part.url !== undefined) {
    const url = new URL(part.url);
    return specification === 'v4' ? { type: 'url', url } : url;
  }
  const data = part.data ?? '';
  return specification === 'v4' ? { type: 'data', data } : data;
}

function withOptions<T extends AiSdkMessage | AiSdkPromptPart>(
  converted: T,
  source: Pick<TextPart, 'providerOptions'>,
): T {
  return source.providerOptions === undefined ? converted : { ...converted, providerOptions: source.providerOptions };
}

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
 * What a model is told about a call of its: never blank, and in words that say what happened without calling a refusal
 * a malfunction.
 *
 * Success: text as text, anything else as JSON (null is `null`). Everything else: words, marked as an error for the
 * provider, except a refusal by a person, which is an ordinary answer.
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
