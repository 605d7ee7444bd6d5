import { applyDecorators, Injectable, SetMetadata } from '@nestjs/common';
import {
  AGENT_METADATA,
  OBSERVE_RUNS_METADATA,
  RESOLVE_APPROVALS_METADATA,
  SCREEN_INPUT_METADATA,
} from './metadata.accessor.js';
import type { AgentOptions } from './agent.options.js';
import type { ApprovalResolver, InputGuardrail, RunObserver } from '../contracts/ports/host.port.js';

/**
 * Declares a provider as an agent. Applies `@Injectable()`. The options are checked at boot, together with all others.
 */
export function Agent(options: AgentOptions): ClassDecorator {
  return applyDecorators(Injectable(), SetMetadata(AGENT_METADATA, options));
}

/**
 * Declares a provider as a `RunObserver`: its `onEvent` is told of lifecycle entries after their commit, at least once, in order per run, without content.
 * Applies `@Injectable()`.
 */
export function ObserveRuns(): <C extends new (...args: never[]) => RunObserver>(target: C) => void {
  return applyDecorators(Injectable(), SetMetadata(OBSERVE_RUNS_METADATA, true));
}

/**
 * Declares a provider as the application's `InputGuardrail`: its `screen` sees prompts and steering messages before they are stored. At most one per
 * application. Applies `@Injectable()`.
 */
export function ScreenInput(): <C extends new (...args: never[]) => InputGuardrail>(target: C) => void {
  return applyDecorators(Injectable(), SetMetadata(SCREEN_INPUT_METADATA, true));
}

/**
 * Declares a provider as the application's `ApprovalResolver`: its `resolve` may decide an approval in the moment, before people are asked. At most
 * one per application. Applies `@Injectable()`.
 */
export function ResolveApprovals(): <C extends new (...args: never[]) => ApprovalResolver>(target: C) => void {
  return applyDecorators(Injectable(), SetMetadata(RESOLVE_APPROVALS_METADATA, true));
}
