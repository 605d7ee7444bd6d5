import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { ModelClient } from 'nestjs-agent-runs';
import { aiSdkModel } from 'nestjs-agent-runs/ai-sdk';
import type { Settings } from '../settings/settings.js';
import { DemoModel } from './demo.model.js';

/** The language model: any OpenAI-compatible endpoint, else the demo. */
export function chatModel({ openai, demoModelDelayMs }: Settings): ModelClient {
  if (!openai) return new DemoModel(demoModelDelayMs);
  const provider = createOpenAICompatible({ name: 'openai', baseURL: openai.baseUrl, apiKey: openai.apiKey });
  return aiSdkModel(provider.chatModel(openai.model));
}
