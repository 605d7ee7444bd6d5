/** What a `@RecoverTool` method answers. */
import type { ProbeResult } from '../contracts/ports/tool-caller.port.js';

/** The call had its effect: `output` is recorded as its result. */
export function happened(output: unknown): ProbeResult {
  return { result: 'happened', output };
}

/** It did not: the call is executed again under the same `operationId`. */
export function didNotHappen(): ProbeResult {
  return { result: 'did-not-happen' };
}

/** Nobody can say: the run needs a person. */
export function outcomeUnknown(): ProbeResult {
  return { result: 'unknown' };
}
