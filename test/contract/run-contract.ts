import { coreCases } from '../../packages/contract/lib/index.js';
import { describeIf } from '../support/describe-if.js';
import type { StoreCase, StoreFactory } from '../../packages/contract/lib/store-case.js';

/**
 * Maps cases of the store contract onto Jest, one test a case, none left out.
 * @param isThere false where the store's server could not be had: reported as skipped
 */
export function runContract(
  name: string,
  open: StoreFactory,
  cases: readonly StoreCase[] = coreCases,
  timeoutMs = 30_000,
  isThere = true,
): void {
  describeIf(isThere)(`${name} keeps the store contract`, () => {
    for (const one of cases) {
      it(`${one.id}: ${one.title}`, () => one.run(open), timeoutMs);
    }
  });
}
