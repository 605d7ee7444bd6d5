/** What must hold after any cycle, wherever it was killed and however often. */
import { problemsOf } from '../../lib/model/scripted/transcript-problems.js';
import { auditJournal, type Audit } from './journal-audit.js';
import type { Cycle, Fact } from './lane.js';
import type { KillPoint, SeenCommit } from './life.js';

export interface CycleAudit {
  problems: string[];
  audit: Audit;
}

/** @param dry the commits of a process that nobody killed */
export function auditCycle(cycle: Cycle, dry: readonly SeenCommit[]): CycleAudit {
  const audit = auditJournal(cycle.report.entries);
  const problems = [
    ...audit.problems,
    ...killProblems(cycle, dry),
    ...worldProblems(cycle, audit),
    ...runProblems(cycle, audit),
    ...rowProblems(cycle),
  ];
  return { problems, audit };
}

/** Every process died at the commit it was to die at; the first one did until then exactly what the dry run did. */
function killProblems({ kills, facts, lives }: Cycle, dry: readonly SeenCommit[]): string[] {
  const killed = facts.filter(({ fact }) => fact === 'killed');
  if (killed.length !== lives.length - 1)
    return [`${killed.length} of ${lives.length} processes were killed on purpose`];
  return killed.flatMap((fact, index) => {
    const { side, commit } = kills[index] as KillPoint;
    const problems: string[] = [];
    if (fact.life !== lives[index] || fact.side !== side || fact.number !== commit)
      problems.push(`process ${fact.life} died ${fact.side} commit ${fact.number}, not ${side} ${commit}`);
    const expected = dry[commit - 1];
    if (index === 0 && text(fact) !== (expected && text(expected)))
      problems.push(`commit ${commit} was ${text(fact)}, but ${expected && text(expected)} without a crash`);
    return problems;
  });
}

/** JRN-1, JRN-4: nothing was begun without an intent of the process that began it, and no intent was acted upon twice. */
function worldProblems({ runId, facts }: Cycle, { intents, steps }: Audit): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  const keyOf = ({ operationId = '' }: Fact): string => operationId.slice(runId.length + 1);
  for (const fact of facts.filter((one) => one.fact === 'entered')) {
    const entry = `${keyOf(fact)}#${fact.attempt}`;
    if (intents.get(entry) !== fact.life)
      problems.push(`process ${fact.life} entered ${entry}, whose intent is of process ${intents.get(entry)}`);
    if (seen.has(entry)) problems.push(`${entry} was entered twice`);
    seen.add(entry);
  }
  const requests = countBy(facts.filter(({ fact }) => fact === 'model').map((fact) => `m${fact.index}/${fact.life}`));
  for (const [request, count] of requests) {
    const [index, life] = request.slice(1).split('/').map(Number) as [number, number];
    const committed = [...intents].filter(([key, by]) => key.startsWith(`r1.m${index + 1}#`) && by === life).length;
    if (count > committed)
      problems.push(`process ${life} sent request ${index + 1} ${count} times, with ${committed} intents`);
  }
  const taken = countBy(facts.filter(({ fact }) => fact === 'step').map((fact) => `${keyOf(fact)}/${fact.step}`));
  for (const [step, count] of taken) {
    if (count > (steps.get(step) ?? 0)) problems.push(`step ${step} ran ${count} times`);
  }
  return problems;
}

function runProblems({ report }: Cycle, audit: Audit): string[] {
  const { run, messages, operations } = report;
  const problems = problemsOf(messages).map((problem) => `the transcript: ${problem}`);
  const expect = (what: string, is: unknown, should: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(should))
      problems.push(`${what} is ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
  };
  expect('the status', run.status, 'completed');
  expect('the output', run.output, 'all done');
  expect('usage', run.usage, audit.usage);
  expect('the number of turns', run.turn, audit.turns);
  expect('the attempt', run.attempt, audit.attempts);
  expect('the sequence', run.sequence, report.entries.length);
  expect('the lease', run.lease, undefined);
  expect('operations listed twice', operations.length - new Set(operations.map(({ key }) => key)).size, 0);
  const results = messages.flatMap((message) => (message.role === 'tool' ? message.content : []));
  expect(
    'what the model was told',
    results.map(({ outcome }) => outcome),
    [...audit.outcomes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, outcome]) => outcome),
  );
  return problems;
}

/** Rows beside the run's own: its session, its worker, its asks and its inbox. */
function rowProblems({ runId, report }: Cycle): string[] {
  const { session, metrics, worker, interactions, inbox } = report;
  const problems: string[] = [];
  if (session?.headRunId !== null || session.latestCompletedRunId !== runId)
    problems.push(`the session is ${JSON.stringify(session)}`);
  if (metrics.offenders !== 0 || metrics.openInteractions !== 0)
    problems.push(`metrics: ${metrics.offenders} offenders, ${metrics.openInteractions} open asks`);
  if (worker.state !== 'ready') problems.push(`the last worker is ${worker.state}: ${worker.reason}`);
  for (const { id, status: state } of interactions)
    if (state !== 'used' && state !== 'answered') problems.push(`ask ${id} is ${state}`);
  for (const { requestId, status: state } of inbox)
    if (state !== 'delivered') problems.push(`message ${requestId} is ${state}`);
  return problems;
}

function text({ kind, entries }: Pick<Fact, 'kind' | 'entries'>): string {
  return `${kind} [${entries?.join(', ')}]`;
}

function countBy(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
