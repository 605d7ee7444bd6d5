/**
 * Models of the AI SDK (specification v2, v3 and v4) as model clients.
 * @module nestjs-agent-runs/ai-sdk
 */

export { aiSdkModel } from './model/ai-sdk/ai-sdk-model.js';
export type { AiSdkModelOptions } from './model/ai-sdk/ai-sdk-model.js';
export type { AiSdkModel } from './model/ai-sdk/ai-sdk-types.js';
