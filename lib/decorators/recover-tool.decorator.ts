import { decorateMethod } from './decorate-method.js';
import type { InterruptedToolCall, ProbeResult } from '../contracts/ports/tool-caller.port.js';
import { RECOVER_TOOL_METADATA } from './agent-runs-metadata.tokens.js';

/**
 * Declares a method of a provider as the probe of a tool with `recovery: 'probe'`: `method(call: InterruptedToolCall): ProbeResult`. It finds out whether an
 * interrupted call had its effect, changes nothing, and answers `happened(result)`, `didNotHappen()` or `outcomeUnknown()`. Enhancers do not apply to it.
 * @param tool the tool's name, for all its versions, or `name@version`
 */
export function RecoverTool(
  tool: string,
): <Probe extends (call: InterruptedToolCall) => ProbeResult | Promise<ProbeResult>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Probe>,
) => void {
  return decorateMethod(RECOVER_TOOL_METADATA, tool);
}
