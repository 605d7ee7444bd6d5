import { cutCalls, type Workload } from './crash-campaign.js';
import { describeCrashes } from './describe-crashes.js';
import type { Cycle } from './lane.js';

const MAIL = 'r1.m1.t2';
const FAX = 'r1.m2.t1';
const SHIP = 'r1.m2.t2';
const NOTE = 'r1.m2.t3';

/** Three turns with calls of all six recovery policies, most of them in parallel. */
const sixPolicies: Workload = {
  name: 'six-policies',
  check(cycle, { outcomes, attentions, turns }, durable) {
    const problems = effectProblems(cycle, outcomes.get(SHIP) === 'unknown');
    if (turns !== 3) problems.push(`the run took ${turns} turns`);
    if (!durable) return problems;

    const cut = cutCalls(durable);
    // A person is asked about the manual call and the one whose probe knows nothing, and about nothing else.
    const expected = [MAIL, FAX].filter((key) => cut.has(key));
    if (attentions.join() !== expected.join()) problems.push(`a person was asked about ${attentions}, not ${expected}`);
    // The model is told that an outcome is unknown when it is, and only then.
    if ((outcomes.get(SHIP) === 'unknown') !== cut.has(SHIP)) problems.push(`ship ended as ${outcomes.get(SHIP)}`);
    return problems;
  },
};

function effectProblems({ runId, kills, facts, report }: Cycle, isUnknown: boolean): string[] {
  const problems: string[] = [];
  const effects = (tool: string): string[] =>
    facts.filter((one) => one.fact === 'effect' && one.tool === tool).map(({ operationId = '' }) => operationId);
  const expect = (tool: string, least: number, most: number): void => {
    const { length } = effects(tool);
    if (length < least || length > most) problems.push(`${tool} had ${length} effects, not ${least} to ${most}`);
    if (new Set(effects(tool)).size > 1) problems.push(`${tool} was called under ${effects(tool).join(', ')}`);
  };
  expect('look_up', 1, 1 + kills.length);
  expect('refund', 1, 1 + kills.length);
  expect('charge', 1, 1);
  expect('fax', 1, 1);
  expect('mail', 1, 1);
  expect('ship', isUnknown ? 0 : 1, 1);
  const notes = report.notes.map(({ operationId }) => operationId);
  if (notes.join() !== `${runId}/${NOTE}`) problems.push(`the notes are of ${notes.join(', ') || 'nobody'}`);
  return problems;
}

await describeCrashes(sixPolicies, 10);
