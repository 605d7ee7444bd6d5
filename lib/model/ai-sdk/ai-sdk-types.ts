import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ModelSettings } from '../../contracts/ports/model-client.port.js';

/** The specifications of models that are understood: of AI SDK 5, 6 and 7. */
export type AiSdkSpecification = 'v2' | 'v3' | 'v4';

/**
 * A model as `createOpenAI(…)('gpt-5')` and its like return it: by structure the part that is used here of
 * `LanguageModelV2`, `V3` and `V4` (https://ai-sdk.dev/providers/community-providers/custom-providers), from whichever
 * copy of their package. Nothing is imported from an AI SDK package.
 */
export interface AiSdkModel {
  /** Which form its requests and replies have. */
  readonly specificationVersion: AiSdkSpecification;
  /** e.g. `openai.responses` */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly modelId: string;
  /** Makes one request. */
  doGenerate(options: never): PromiseLike<unknown>;
}

/** Settings of each request; the same names and meanings as in the AI SDK. Those of an agent (`modelSettings`) go before them. */
export interface AiSdkSettings extends ModelSettings {
  /** Only models of specification v4. */
  reasoning?: 'provider-default' | 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh';
  /** Extra HTTP headers; never stored, never logged. */
  headers?: Record<string, string>;
}

interface WithOptions {
  providerOptions?: JsonObject;
}

/** v4 tags what v2 and v3 tell apart by type. */
export type AiSdkFileData = string | URL | { type: 'data'; data: string } | { type: 'url'; url: URL };

export type AiSdkToolOutput =
  { type: 'text' | 'error-text'; value: string } | { type: 'json' | 'error-json'; value: JsonValue };

export type AiSdkPromptPart = WithOptions &
  (
    | { type: 'text' | 'reasoning'; text: string }
    | { type: 'file'; mediaType: string; data: AiSdkFileData; filename?: string }
    | { type: 'reasoning-file'; mediaType: string; data: AiSdkFileData }
    | { type: 'custom'; kind: string }
    | { type: 'tool-call'; toolCallId: string; toolName: string; input: JsonValue; providerExecuted?: true }
    | { type: 'tool-result'; toolCallId: string; toolName: string; output: AiSdkToolOutput }
  );

export type AiSdkMessage = WithOptions &
  ({ role: 'system'; content: string } | { role: 'user' | 'assistant' | 'tool'; content: AiSdkPromptPart[] });

export interface AiSdkFunctionTool {
  type: 'function';
  name: string;
  description: string;
  inputSchema: JsonObject;
}

export interface AiSdkCallOptions extends AiSdkSettings {
  prompt: AiSdkMessage[];
  tools?: AiSdkFunctionTool[];
  toolChoice?: { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string };
  abortSignal: AbortSignal;
}
