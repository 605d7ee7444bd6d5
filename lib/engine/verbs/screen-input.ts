import { isText, readAnswer } from '../../contracts/host-answer.js';
import type { InputVerdict, ScreenedInput } from '../../contracts/ports/host.port.js';
import type { EnginePorts } from '../engine-ports.js';

/**
 * Asks the guardrail about what somebody says to a run. Null alone lets it pass: whatever else is no verdict refuses
 * too.
 * @returns why it is refused; null when it is not
 */
export async function screenInput(
  { guardrail, log }: Pick<EnginePorts, 'guardrail' | 'log'>,
  input: ScreenedInput,
): Promise<string | null> {
  if (!guardrail) return null;
  const answer: unknown = await guardrail.screen(input);
  if (answer === null) return null;
  const verdict = readAnswer<NonNullable<InputVerdict>>(answer, { refuse: isText });
  if (verdict) return verdict.refuse;
  log.error('the input guardrail answered neither null nor { refuse: text }; the input is refused', {
    runId: input.runId,
    kind: input.kind,
  });
  return 'the check of the input gave no verdict';
}
