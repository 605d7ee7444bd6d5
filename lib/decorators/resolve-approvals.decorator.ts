import { applyDecorators, Injectable, SetMetadata } from '@nestjs/common';
import type { ApprovalResolver } from '../contracts/ports/host.port.js';
import { RESOLVE_APPROVALS_METADATA } from './agent-runs-metadata.tokens.js';

/**
 * Declares a provider as the application's `ApprovalResolver`: its `resolve` may decide an approval in the moment, before people are asked. At most
 * one per application. Applies `@Injectable()`.
 */
export function ResolveApprovals(): <C extends new (...args: never[]) => ApprovalResolver>(target: C) => void {
  return applyDecorators(Injectable(), SetMetadata(RESOLVE_APPROVALS_METADATA, true));
}
