import { applyDecorators, Injectable, SetMetadata } from '@nestjs/common';
import type { RunObserver } from '../contracts/ports/host.port.js';
import { OBSERVE_RUNS_METADATA } from './agent-runs-metadata.tokens.js';

/**
 * Declares a provider as a `RunObserver`: its `onEvent` is told of lifecycle entries after their commit, at least once, in order per run, without content.
 * Applies `@Injectable()`.
 */
export function ObserveRuns(): <C extends new (...args: never[]) => RunObserver>(target: C) => void {
  return applyDecorators(Injectable(), SetMetadata(OBSERVE_RUNS_METADATA, true));
}
