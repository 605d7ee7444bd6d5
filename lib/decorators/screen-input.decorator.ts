import { applyDecorators, Injectable, SetMetadata } from '@nestjs/common';
import type { InputGuardrail } from '../contracts/ports/host.port.js';
import { SCREEN_INPUT_METADATA } from './agent-runs-metadata.tokens.js';

/**
 * Declares a provider as the application's `InputGuardrail`: its `screen` sees prompts and steering messages before they are stored. At most one per
 * application. Applies `@Injectable()`.
 */
export function ScreenInput(): <C extends new (...args: never[]) => InputGuardrail>(target: C) => void {
  return applyDecorators(Injectable(), SetMetadata(SCREEN_INPUT_METADATA, true));
}
