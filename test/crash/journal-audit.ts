/**
 * Reads a run's whole journal as an accountant would: entry by entry, with the rules of JRN-1, JRN-4, JRN-5, I3, I5 and RUN-4 and nothing of the engine's
 * own code. It knows runs whose tools succeed and whose models answer; whatever else it meets is a problem.
 */
import type { CallVerdict, JournalEntry, SequencedEntry } from '../../lib/contracts/journal-entry.js';
import { addUsage, NO_USAGE, type UsageTotals } from '../../lib/contracts/operation.js';

export interface Audit {
  problems: string[];
  usage: UsageTotals;
  /** Model operations. */
  turns: number;
  /** Number of claims. */
  attempts: number;
  /** Which process (by the number in its worker's name) committed the intent: `r1.m1.t0#1` → 1. */
  intents: Map<string, number>;
  /** How often a step was begun: `r1.m1.t0/offer` → 1. */
  steps: Map<string, number>;
  /** Final outcomes by operation key, tools only. */
  outcomes: Map<string, 'success' | 'unknown'>;
  /** The operations of each `run.attention_needed`. */
  attentions: string[][];
}

interface Call extends CallVerdict {
  /** `cut`: begun by an owner that is gone. */
  status: 'ready' | 'waiting' | 'begun' | 'cut' | 'probed' | 'uncertain' | 'done';
  attempts: number;
  steps: Map<string, 'begun' | 'done'>;
}

const REPEATED = ['idempotent', 'safe', 'transactional'];

export function auditJournal(entries: readonly SequencedEntry[]): Audit {
  return new JournalAudit().read(entries);
}

class JournalAudit {
  private readonly audit: Audit = {
    problems: [],
    usage: { ...NO_USAGE },
    turns: 0,
    attempts: 0,
    intents: new Map(),
    steps: new Map(),
    outcomes: new Map(),
    attentions: [],
  };
  private sequence = 0;
  private type = '';
  private life = 0;
  private owner = '';
  private running = false;
  private leaseExpired = false;
  private ended = false;
  /** What the next claim has to give as its cause. */
  private cause = 'submitted';
  private model: { key: string; attempt: number; digest: string; cut: boolean } | null = null;
  private calls: Call[] = [];
  private readonly answered = new Set<string>();
  private readonly steered = new Set<string>();

  read(entries: readonly SequencedEntry[]): Audit {
    for (const entry of entries) {
      this.check(entry.sequence === ++this.sequence, `has sequence ${entry.sequence}`);
      this.type = entry.type;
      this.check(!this.ended, 'comes after the end');
      this.take(entry);
    }
    this.check(this.ended, 'is the last entry, but the run is not completed');
    return this.audit;
  }

  private take(entry: JournalEntry): void {
    switch (entry.type) {
      case 'run.submitted':
        return this.check(this.sequence === 1, 'is not the first entry');
      case 'run.started':
      case 'run.resumed':
        return this.claimed(entry);
      case 'run.lease_expired':
        this.check(this.running && entry.owner === this.owner, `names ${entry.owner}, the owner is ${this.owner}`);
        this.leaseExpired = true;
        this.cause = 'recovered';
        return;
      case 'model.started':
        return this.modelStarted(entry);
      case 'model.completed':
        this.check(this.owned() && this.model?.key === entry.key && !this.model.cut, 'was not begun by this owner');
        this.model = null;
        this.audit.usage = addUsage(this.audit.usage, entry.usage);
        this.calls = entry.calls.map((verdict) => ({ ...verdict, status: 'ready', attempts: 0, steps: new Map() }));
        return;
      case 'run.suspended':
        this.check(this.owned() && this.calls.every(({ status }) => status !== 'begun'), 'leaves a call in flight');
        this.running = false;
        return;
      case 'run.attention_needed':
        return this.attention(entry.attention.operations ?? [], entry.attention.reason);
      case 'run.steered':
        this.check(this.owned() && this.isBoundary(), 'is not at a boundary');
        this.check(!this.steered.has(entry.requestId), `delivers ${entry.requestId} again`);
        this.steered.add(entry.requestId);
        return;
      case 'run.completed':
        this.check(this.owned() && this.isBoundary(), 'leaves something open');
        this.running = false;
        this.ended = true;
        return;
      case 'budget.exhausted':
        return this.check(this.owned(), 'has no owner');
      case 'budget.granted':
        this.check(!this.running, 'moves a run that has an owner');
        this.cause = 'budget';
        return;
      default:
        return this.takeOfCall(entry);
    }
  }

  private claimed(entry: Extract<JournalEntry, { type: 'run.started' | 'run.resumed' }>): void {
    this.audit.attempts += 1;
    const { attempt, cause, owner, previousOwner, unownedForMs } = entry;
    this.check((attempt === 1) === (entry.type === 'run.started'), 'has the wrong type for its attempt');
    this.check(attempt === this.audit.attempts, `is attempt ${attempt}, not ${this.audit.attempts}`);
    this.check(!this.running || this.leaseExpired, 'takes a run whose lease did not expire');
    this.check(cause === this.cause, `has the cause ${cause}, not ${this.cause}`);
    this.check(attempt === 1 || previousOwner === this.owner, `follows ${previousOwner}, not ${this.owner}`);
    this.check(unownedForMs >= 0 && unownedForMs < 30_000, `was unowned for ${unownedForMs} ms`);
    this.life = Number(/^life-(\d+)-/.exec(owner)?.[1]);
    this.owner = owner;
    this.running = true;
    this.leaseExpired = false;
    if (this.model) this.model.cut = true;
    for (const call of this.calls) if (call.status === 'begun') call.status = 'cut';
  }

  private modelStarted({ key, attempt, digest }: Extract<JournalEntry, { type: 'model.started' }>): void {
    this.check(this.owned(), 'has no owner');
    this.check(
      this.calls.every(({ status }) => status === 'done'),
      'comes before the results of the turn before (I5)',
    );
    if (this.model) {
      this.check(this.model.key === key && this.model.cut, 'begins a request beside another');
      this.check(this.model.attempt + 1 === attempt, `is attempt ${attempt}, not ${this.model.attempt + 1}`);
      this.check(this.model.digest === digest, 'repeats the request with another digest');
    } else {
      this.audit.turns += 1;
      this.check(attempt === 1 && key === `r1.m${this.audit.turns}`, `is ${key}, attempt ${attempt}`);
    }
    this.model = { key, attempt, digest, cut: false };
    this.audit.intents.set(`${key}#${attempt}`, this.life);
  }

  private attention(operations: string[], reason: string): void {
    const uncertain = this.calls.filter(({ status }) => status === 'uncertain').map(({ key }) => key);
    this.check(reason === 'uncertain_outcome', `has the reason ${reason}`);
    this.check(
      uncertain.length > 0 && String(uncertain) === String(operations),
      `names ${operations}, not ${uncertain}`,
    );
    const rest = this.calls.filter(({ status }) => !['uncertain', 'done', 'waiting'].includes(status));
    this.check(this.owned() && rest.length === 0, 'leaves a call that could be decided');
    this.audit.attentions.push(operations);
    this.running = false;
  }

  private takeOfCall(entry: JournalEntry): void {
    const key = 'key' in entry ? entry.key : null;
    const call = this.calls.find((candidate) => candidate.key === key);
    if (!call) return this.check(false, `is about ${key}, which is no call of this turn`);
    switch (entry.type) {
      case 'tool.started':
        this.check(this.owned(), 'has no owner');
        this.check(
          call.status === 'ready' || (call.status === 'cut' && REPEATED.includes(String(call.recovery))),
          `begins a ${call.recovery} call that is ${call.status}`,
        );
        this.check(entry.attempt === ++call.attempts, `is attempt ${entry.attempt}, not ${call.attempts}`);
        this.check(entry.recovery === call.recovery, `has the policy ${entry.recovery}, not ${call.recovery}`);
        this.audit.intents.set(`${call.key}#${entry.attempt}`, this.life);
        call.status = 'begun';
        return;
      case 'tool.completed':
        this.check(this.owned() && call.status === 'begun', `ends a call that is ${call.status}`);
        return this.finish(call, 'success');
      case 'tool.uncertain':
        return this.uncertain(call, entry.reportedToModel, entry.interruptedBy);
      case 'tool.probed':
        this.check(
          this.owned() && call.recovery === 'probe' && call.status === 'cut',
          `is about a ${call.status} call`,
        );
        if (entry.result === 'happened') return this.finish(call, 'success');
        call.status = entry.result === 'unknown' ? 'probed' : 'ready';
        return;
      case 'tool.resolved':
        this.check(!this.running && call.status === 'uncertain', `resolves a call that is ${call.status}`);
        this.cause = 'resolved';
        if (!('notHappened' in entry.resolution)) return this.finish(call, 'success');
        call.status = 'ready';
        return;
      default:
        return this.takeOfPeople(entry, call);
    }
  }

  private takeOfPeople(entry: JournalEntry, call: Call): void {
    switch (entry.type) {
      case 'tool.step_started':
        this.check(this.owned() && call.status === 'begun', `is a step of a ${call.status} call`);
        this.check(call.steps.get(entry.step) !== 'done', `repeats the completed step ${entry.step}`);
        call.steps.set(entry.step, 'begun');
        this.count(`${call.key}/${entry.step}`);
        return;
      case 'tool.step_completed':
        this.check(call.status === 'begun' && call.steps.get(entry.step) === 'begun', `ends no step ${entry.step}`);
        call.steps.set(entry.step, 'done');
        return;
      case 'tool.waiting':
        this.check(this.owned() && call.status === 'begun', `asks from a call that is ${call.status}`);
        call.status = 'waiting';
        return;
      case 'interaction.requested':
        // An approval of the call itself is asked for before anything of it is begun.
        this.check(
          this.owned() && (call.status === 'waiting' || (call.status === 'ready' && call.attempts === 0)),
          `asks about a call that is ${call.status}`,
        );
        call.status = 'waiting';
        return;
      case 'interaction.answered':
        this.check(call.status === 'waiting', `answers a call that is ${call.status}`);
        this.check(!this.answered.has(entry.interactionId), 'answers the same ask again');
        this.answered.add(entry.interactionId);
        if (!this.running) this.cause = 'answered';
        call.status = 'ready';
        return;
      default:
        return this.check(false, 'is of no type that may occur here');
    }
  }

  private uncertain(call: Call, told: boolean, cut: string | null): void {
    const expected = { manual: 'cut', inform: 'cut', probe: 'probed' }[String(call.recovery)];
    this.check(this.owned() && call.status === expected && cut === 'crash', `is about a ${call.recovery} call`);
    this.check(told === (call.recovery === 'inform'), `tells the model: ${told}`);
    if (told) this.finish(call, 'unknown');
    else call.status = 'uncertain';
  }

  private finish(call: Call, outcome: 'success' | 'unknown'): void {
    this.check(!this.audit.outcomes.has(call.key), `gives ${call.key} a second result`);
    this.audit.outcomes.set(call.key, outcome);
    call.status = 'done';
  }

  private count(step: string): void {
    this.audit.steps.set(step, (this.audit.steps.get(step) ?? 0) + 1);
  }

  private owned(): boolean {
    return this.running && !this.leaseExpired;
  }

  private isBoundary(): boolean {
    return this.model === null && this.calls.every(({ status }) => status === 'done');
  }

  private check(holds: boolean, problem: string): void {
    if (!holds) this.audit.problems.push(`entry ${this.sequence} (${this.type}) ${problem}`);
  }
}
