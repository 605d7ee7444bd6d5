import { cutCalls, type Workload } from './crash-campaign.js';
import { describeCrashes } from './describe-crashes.js';
import type { Cycle } from './lane.js';

const REFUND = 'r1.m1.t0';
const SURVEY = 'r1.m1.t1';
const SHIP = 'r1.m2.t0';
const CLOSE = 'r1.m2.t1';

/** Approvals, a question, a budget and messages of people, with journaled work in between. */
const people: Workload = {
  name: 'people',
  check(cycle, { outcomes, attentions, turns }, durable) {
    const problems = [...effectProblems(cycle, outcomes.get(SHIP) === 'unknown'), ...peopleProblems(cycle)];
    if (turns !== 4) problems.push(`the run took ${turns} turns`);
    if (!durable) return problems;

    const cut = cutCalls(durable);
    const expected = [REFUND, CLOSE].filter((key) => cut.has(key));
    if (attentions.join() !== expected.join()) problems.push(`a person was asked about ${attentions}, not ${expected}`);
    if ((outcomes.get(SHIP) === 'unknown') !== cut.has(SHIP)) problems.push(`ship ended as ${outcomes.get(SHIP)}`);
    return problems;
  },
};

function effectProblems({ kills, facts }: Cycle, isUnknown: boolean): string[] {
  const problems: string[] = [];
  const expect = (tool: string, least: number, most: number): void => {
    const effects = facts.filter((one) => one.fact === 'effect' && one.tool === tool);
    if (effects.length < least || effects.length > most) problems.push(`${tool} had ${effects.length} effects`);
    if (new Set(effects.map(({ operationId }) => operationId)).size > 1) problems.push(`${tool} had several keys`);
  };
  expect('refund', 1, 1);
  expect('survey', 1, 1 + kills.length);
  expect('look_up', 1, 1 + kills.length);
  expect('ship', isUnknown ? 0 : 1, 1);
  expect('close', 1, 1);
  const steps = facts.filter(({ fact }) => fact === 'step').length;
  if (steps < 1 || steps > 1 + kills.length) problems.push(`the step ran ${steps} times`);
  return problems;
}

/** PPL-3, BUD-2, STR-1: each thing that people did counts once, whatever they had to do again. */
function peopleProblems({ report }: Cycle): string[] {
  const { run, entries, messages, interactions, inbox } = report;
  const problems: string[] = [];
  const expect = (what: string, is: unknown, should: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(should))
      problems.push(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
  };
  const asks = interactions.map(({ operationKey, kind, status }) => `${operationKey} ${kind} ${status}`).sort();
  expect('asks', asks, [`${REFUND} approval used`, `${SURVEY} question answered`, `${CLOSE} approval used`]);
  expect('decided by', [...new Set(interactions.map(({ decision }) => decision?.by))].sort(), ['ann', 'bob']);
  const grants = entries.filter(({ type }) => type === 'budget.granted').length;
  expect('grants', [grants, run.budget?.maxTotalTokens], [1, 120]);
  const inboxIds = inbox.map(({ requestId }) => requestId);
  expect('the inbox', inboxIds, ['steer-1', 'steer-2']);
  const said = messages.flatMap((message) =>
    message.role === 'user' && message.kind === 'steering' ? [`${message.sender}: ${textOf(message)}`] : [],
  );
  expect('what people said', said, ['ann: Hurry up.', 'ann: One more thing.']);
  const answers = messages.flatMap((message) => (message.role === 'tool' ? message.content : []));
  const survey = answers.find(({ name }) => name === 'survey')?.output as { mood?: string; cents?: number };
  expect('the survey', [survey?.mood, survey?.cents], ['fine', 1200]);
  return problems;
}

function textOf({ content }: { content: readonly { type: string; text?: string }[] }): string {
  return content.map(({ text = '' }) => text).join('');
}

await describeCrashes(people, 12);
