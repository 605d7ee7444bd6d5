/**
 * An AI SDK language model as a `ModelClient`. One `doGenerate` per call: retries belong to the run, which commits each attempt first.
 * Whatever goes wrong comes out as a `ModelCallError` whose text is fit to be stored.
 */
import type { ModelClient, ModelReply, ModelRequest } from '../../contracts/ports/model-client.port.js';
import { InvalidConfigurationError } from '../../errors/configuration/invalid-configuration.error.js';
import { wellFormedJson, wellFormedText } from '../../engine/values/well-formed.js';
import type { AiSdkCallOptions, AiSdkFunctionTool, AiSdkModel, AiSdkSettings } from './ai-sdk-types.js';
import { abortedError, modelCallError } from './model-call-failure.js';
import { promptToAiSdk } from './prompt-to-ai-sdk.js';
import { replyFromAiSdk } from './reply-from-ai-sdk.js';

export interface AiSdkModelOptions {
  /** Shown in journals and errors, and part of an agent's definition. Default `<provider>:<modelId>`. */
  name?: string;
  /**
   * Whose call ids and provider parts these are. Default the model's own `provider`. Say it where one gateway leads to models of different makers, whose
   * ids differ.
   */
  provider?: string;
  settings?: AiSdkSettings;
}

const SPECIFICATIONS: readonly string[] = ['v2', 'v3', 'v4'];

/**
 * Uses an AI SDK model for agent runs.
 *
 * Files of a prompt are handed on as they are; a URL is not downloaded, so the provider must accept it. Reasoning, and parts of calls that a provider
 * executed itself, go back to the provider that made them exactly as they came; to another provider the latter are left out.
 * @param model of specification `v2` (AI SDK 5), `v3` (6) or `v4` (7)
 * @throws InvalidConfigurationError for anything else, e.g. a model's name as text
 */
export function aiSdkModel(model: AiSdkModel, options: AiSdkModelOptions = {}): ModelClient {
  const problem = configurationProblem(model);
  if (problem !== null) throw new InvalidConfigurationError([problem]);
  const { name = `${model.provider}:${model.modelId}`, provider = model.provider, settings = {} } = options;
  return { name, provider, generate: (request) => generate(model, { name, provider, settings }, request) };
}

async function generate(
  model: AiSdkModel,
  { name, provider, settings }: Required<AiSdkModelOptions>,
  request: ModelRequest,
): Promise<ModelReply> {
  if (request.signal.aborted) throw abortedError(name);
  try {
    const options: AiSdkCallOptions = {
      ...settings,
      prompt: promptToAiSdk(request, { specification: model.specificationVersion, provider }),
      ...toolOptions(request),
      abortSignal: request.signal,
    };
    return replyFromAiSdk(await model.doGenerate(options as never), provider);
  } catch (error) {
    throw request.signal.aborted
      ? abortedError(name)
      : modelCallError(error, { name, modelId: model.modelId, now: Date.now() });
  }
}

function toolOptions(request: ModelRequest): Pick<AiSdkCallOptions, 'tools' | 'toolChoice'> {
  if (request.tools.length === 0) return {};
  const tools = request.tools.map((tool): AiSdkFunctionTool => ({
    type: 'function',
    name: tool.name,
    description: wellFormedText(tool.description),
    inputSchema: wellFormedJson(tool.inputSchema),
  }));
  return { tools, toolChoice: { type: 'auto' } };
}

function configurationProblem(model: unknown): string | null {
  const give = 'Give an AI SDK model of specification v2, v3 or v4, e.g. createOpenAI({ … })("gpt-5").';
  if (typeof model !== 'object' || model === null)
    return `aiSdkModel was given ${model == null ? String(model) : `a ${typeof model}`}. ${give}`;
  const { specificationVersion, doGenerate, modelId } = model as Partial<Record<keyof AiSdkModel, unknown>>;
  const label = typeof modelId === 'string' ? `The model "${modelId}"` : 'The object given to aiSdkModel';
  if (typeof doGenerate !== 'function') return `${label} has no doGenerate method. ${give}`;
  if (!SPECIFICATIONS.includes(specificationVersion as string)) {
    return `${label} has specificationVersion ${JSON.stringify(specificationVersion) ?? 'undefined'}, which is not supported. ${give}`;
  }
  return null;
}
