import { applyDecorators, Injectable, SetMetadata } from '@nestjs/common';
import { OBSERVE_RUNS_METADATA } from './agent-runs-metadata.tokens.js';

/**
 * Declares a provider as a `RunObserver`: its `onEvent` is told of lifecycle entries after their commit, at least once, in order per run, without content.
 * Applies `@Injectable()`.
 */
export function ObserveRuns(): ClassDecorator {
  return applyDecorators(Injectable(), SetMetadata(OBSERVE_RUNS_METADATA, true));
}
