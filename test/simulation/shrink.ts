// Shortens a history that fails: whatever can be left out so that the same invariant is still violated, is left out.
import { runHistory } from './history.js';
import type { Plan } from './plan.js';

interface Part {
  text: string;
  without: () => Plan;
}

const LISTS = ['actions', 'faults', 'worldFaults', 'runs'] as const;

/** What a plan may do without, each by itself. */
export function partsOf(plan: Plan): Part[] {
  return LISTS.flatMap((list) =>
    (plan[list] as unknown[]).map((part, index) => ({
      text: Object.values(part as object).join(' '),
      without: () => ({ ...plan, [list]: plan[list].filter((_, at) => at !== index) }),
    })),
  );
}

/** To be called under `guardGlobals`. @param id of the invariant */
export async function shrink(plan: Plan, id: string): Promise<Plan> {
  let short = plan;
  for (let isShorter = true; isShorter;) {
    isShorter = false;
    for (const { without } of partsOf(short)) {
      const candidate = without();
      if ((await runHistory(candidate)).violation?.id !== id) continue;
      short = candidate;
      isShorter = true;
      break;
    }
  }
  return short;
}
