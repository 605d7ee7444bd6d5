import type { ModelClient, ModelReply, ModelRequest, ModelSettings } from '../../contracts/ports/model-client.port.js';
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';
import { wellFormedJson, wellFormedText } from '../../engine/values/plain-text.js';
import type { AiSdkCallOptions, AiSdkFunctionTool, AiSdkModel, AiSdkSettings } from './ai-sdk-types.js';
import { abortedError, modelCallError } from './model-call-failure.js';
import { promptToAiSdk } from './prompt-to-ai-sdk.js';
import { replyFromAiSdk, type MissingFinishReason } from './reply-from-ai-sdk.js';

/** What `aiSdkModel` takes beside the model. */
export interface AiSdkModelOptions {
  /** Shown in journals and errors, and part of an agent's definition. Default `<provider>:<modelId>`. */
  name?: string;
  /**
   * Whose call ids and provider parts these are. Default the model's own `provider`. Say it where one gateway leads to models of different makers, whose
   * ids differ.
   */
  provider?: string;
  /** Settings of each request; those of an agent go before them. */
  settings?: AiSdkSettings;
  /**
   * For a provider that ends its replies without a finish reason. `fail` (default): such a reply may have been cut, and is a failed attempt. `accept`: one
   * that arrived complete is judged by its content, `tool-calls` with calls and `stop` without.
   */
  missingFinishReason?: MissingFinishReason;
}

const SPECIFICATIONS: readonly string[] = ['v2', 'v3', 'v4'];

/**
 * Uses an AI SDK model for agent runs.
 *
 * Files of a prompt are handed on as they are; a URL is not downloaded, so the provider must accept it. Reasoning, and parts of calls that a provider
 * executed itself, go back to the provider that made them exactly as they came; to another provider the latter are left out.
 *
 * One `doGenerate` per call: retries belong to the run, which commits each attempt first. Whatever goes wrong comes out as a `ModelCallError` whose text is
 * fit to be stored.
 * @param model of specification `v2` (AI SDK 5), `v3` (6) or `v4` (7)
 * @throws InvalidConfigurationError for anything else, e.g. a model's name as text
 */
export function aiSdkModel(model: AiSdkModel, options: AiSdkModelOptions = {}): ModelClient {
  const problem = configurationProblem(model) ?? optionProblem(options);
  if (problem !== null) throw new InvalidConfigurationError([problem]);
  const { name = `${model.provider}:${model.modelId}`, provider = model.provider } = options;
  return { name, provider, generate: (request) => generate(model, { ...options, name, provider }, request) };
}

async function generate(
  model: AiSdkModel,
  { name, provider, settings, missingFinishReason }: AiSdkModelOptions & { name: string; provider: string },
  request: ModelRequest,
): Promise<ModelReply> {
  if (request.signal.aborted) throw abortedError(name);
  let isSent = false;
  try {
    const options: AiSdkCallOptions = {
      ...mergedSettings(settings, request.settings),
      prompt: promptToAiSdk(request, { specification: model.specificationVersion, provider }),
      ...toolOptions(request),
      abortSignal: request.signal,
    };
    isSent = true;
    return replyFromAiSdk(await model.doGenerate(options as never), provider, missingFinishReason);
  } catch (error) {
    throw request.signal.aborted
      ? abortedError(name)
      : modelCallError(error, { name, modelId: model.modelId, now: Date.now(), isSent });
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
  const { toolChoice: choice = 'auto' } = request;
  return { tools, toolChoice: typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool } };
}

/** Of the agent before those of the client; options of a provider one by one. */
function mergedSettings(client: AiSdkSettings = {}, agent: ModelSettings = {}): AiSdkSettings {
  if (!client.providerOptions || !agent.providerOptions) return { ...client, ...agent };
  const providerOptions = { ...client.providerOptions };
  for (const [name, options] of Object.entries(agent.providerOptions))
    providerOptions[name] = { ...providerOptions[name], ...options };
  return { ...client, ...agent, providerOptions };
}

function optionProblem({ missingFinishReason }: AiSdkModelOptions): string | null {
  if (missingFinishReason === undefined || missingFinishReason === 'fail' || missingFinishReason === 'accept')
    return null;
  return `missingFinishReason of aiSdkModel is ${JSON.stringify(missingFinishReason)}; it must be 'fail' or 'accept'.`;
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
