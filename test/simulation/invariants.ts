// I1 to I12 of docs/architecture.md, checked with each commit against everything that was committed before it. It folds the journal by rules of its own: what
// the engine's fold believes is no evidence.
import type { InteractionStatus } from '../../lib/contracts/interaction.js';
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import type { RecoveryPolicy } from '../../lib/contracts/policies.js';
import type { RunRecord } from '../../lib/contracts/run.js';
import { isSettled } from '../../lib/contracts/run-status.js';
import type { TablesChange, JournalRow } from '../../lib/stores/in-memory/tables.js';
import type { Commit, SimDatabase } from './sim-database.js';
import type { Ledger } from './ledger.js';
import type { World } from './world.js';

export interface CallAudit {
  key: string;
  name: string;
  /** The strictest that was recorded for it. */
  policy: RecoveryPolicy | null;
  state: 'ready' | 'gated' | 'started' | 'uncertain' | 'done';
  /** Of its last intent. */
  attempt: number;
  /** Executions of which a person or a probe said that nothing had happened. */
  excused: number;
  /** Output of a method that returned. */
  output: unknown;
  completed: boolean;
}

export interface RunAudit {
  types: JournalEntry['type'][];
  /** For each entry: the attempt that appended it, or its own transaction. */
  writers: string[];
  settledBy: string | null;
  isAgain: boolean;
  model: { key: string; attempt: number } | null;
  /** Of the turn that is under way. */
  turn: CallAudit[];
  calls: Map<string, CallAudit>;
  tokens: number;
  decided: Set<string>;
  steered: Set<string>;
}

/** Written by the owner of a run alone. */
const OF_OWNER: ReadonlySet<JournalEntry['type']> = new Set<JournalEntry['type']>([
  'model.started',
  'model.completed',
  'model.attempt_failed',
  'tool.started',
  'tool.released',
  'tool.completed',
  'tool.step_started',
  'tool.step_completed',
  'tool.waiting',
  'tool.probed',
  'run.completed',
  'run.suspended',
  'run.handed_over',
  'run.backing_off',
]);

const SETTLING: ReadonlySet<JournalEntry['type']> = new Set<JournalEntry['type']>([
  'run.completed',
  'run.failed',
  'run.cancelled',
  'run.blocked',
  'run.timed_out',
]);

const STORE_CODES: ReadonlySet<string> = new Set([
  'STORE_UNAVAILABLE',
  'STORE_CONFLICT',
  'STORE_BROKEN',
  'FENCED',
  'SEQUENCE_CONFLICT',
]);

/** By a table of its own: the engine's is among what is checked. */
const STRICTNESS: readonly RecoveryPolicy[] = ['manual', 'inform', 'probe', 'idempotent', 'safe'];

export function stricterOf(recorded: RecoveryPolicy, other: RecoveryPolicy): RecoveryPolicy {
  if (recorded === 'transactional' || other === 'transactional') return recorded;
  return STRICTNESS.indexOf(recorded) <= STRICTNESS.indexOf(other) ? recorded : other;
}

export class Invariants {
  readonly runs = new Map<string, RunAudit>();
  /** Status of each interaction. */
  private readonly asks = new Map<string, InteractionStatus>();

  constructor(
    private readonly world: World,
    private readonly database: SimDatabase,
    private readonly ledger: Pick<Ledger, 'entries'>,
    /** The worker of a process, as it names itself. */
    private readonly workerOf: (process: string) => string | undefined,
  ) {}

  of(runId: string): RunAudit {
    let audit = this.runs.get(runId);
    if (!audit) {
      audit = {
        types: [],
        writers: [],
        settledBy: null,
        isAgain: false,
        model: null,
        turn: [],
        calls: new Map(),
        tokens: 0,
        decided: new Set(),
        steered: new Set(),
      };
      this.runs.set(runId, audit);
    }
    return audit;
  }

  committed({ by, commit, before }: Commit): void {
    const isAppend = commit.changes.every(({ kind }) => kind === 'journal');
    for (const change of commit.changes) {
      switch (change.kind) {
        case 'journal':
          this.row(by.name, change.runId, change.row, before.get(change.runId), isAppend);
          break;
        case 'interaction':
          this.interaction(change);
          break;
        default:
      }
    }
    for (const runId of before.keys()) this.run(runId, before.get(runId));
  }

  private row(by: string, runId: string, row: JournalRow, before: RunRecord | undefined, isAppend: boolean): void {
    const audit = this.of(runId);
    const entries = JSON.parse(row.entries) as JournalEntry[];
    const { world } = this;
    world.require(row.first === audit.types.length + 1, 'I3', `run ${runId} has a gap before ${row.first}`);
    let owner = before?.status === 'running' ? before.owner : null;
    let attempt = before?.attempt ?? 0;
    for (const entry of entries) {
      audit.types.push(entry.type);
      audit.writers.push(isAppend ? `attempt ${row.attempt}` : `transaction ${row.first}`);
      if (entry.type === 'run.started' || entry.type === 'run.resumed') {
        this.claim(runId, entry, before);
        ({ owner, attempt } = entry);
      }
      if (OF_OWNER.has(entry.type)) {
        world.require(
          owner !== null && row.attempt === attempt,
          'I3',
          `${entry.type} of attempt ${row.attempt} is in the journal of run ${runId}, which is ${before?.status}, attempt ${attempt}`,
        );
        world.require(
          owner === this.workerOf(by),
          'I3',
          `${by} wrote ${entry.type} of run ${runId}, which ${owner} owns`,
        );
      }
      this.entry(runId, audit, entry);
    }
    world.require(
      row.totals.usage.totalTokens === audit.tokens,
      'I9',
      `run ${runId} counts ${row.totals.usage.totalTokens} tokens, its replies used ${audit.tokens}`,
    );
  }

  /** I12: only an owner whose lease has ended by the database's clock is taken over. */
  private claim(
    runId: string,
    { at, attempt, owner }: { at: number; attempt: number; owner: string },
    before: RunRecord | undefined,
  ): void {
    const { world } = this;
    world.require(attempt === (before?.attempt ?? 0) + 1, 'I3', `run ${runId} is claimed as attempt ${attempt}`);
    if (before?.status !== 'running') return;
    const worker = this.database.tables.workers.get(before.owner ?? '');
    // A renewal that lands between the look and the commit comes too late.
    if (!worker || worker.heartbeatAt >= at) return;
    const left = worker.leaseExpiresAt - at;
    world.require(
      left <= 0,
      'I12',
      `${owner} takes run ${runId} over from ${before.owner}, whose lease lasts another ${left} ms`,
    );
  }

  private entry(runId: string, audit: RunAudit, entry: JournalEntry): void {
    const { world } = this;
    const about = `${entry.type} of run ${runId}`;
    if (audit.settledBy !== null && entry.type !== 'run.retried' && entry.type !== 'run.restarted') {
      world.require(entry.type === 'operation.late_result', 'I4', `${about} follows ${audit.settledBy}`);
      return;
    }
    if (SETTLING.has(entry.type)) audit.settledBy = entry.type;
    switch (entry.type) {
      case 'run.retried':
      case 'run.restarted':
        audit.settledBy = null;
        audit.isAgain = true;
        if (entry.type === 'run.restarted') {
          audit.model = null;
          audit.turn = [];
        }
        return;
      case 'run.failed':
        world.require(!STORE_CODES.has(entry.error.code), 'I10', `${about}: ${entry.error.code}`);
        return;
      case 'run.completed':
        world.require(this.isBoundary(audit), 'I5', `${about} leaves an operation open`);
        return;
      case 'run.steered':
        world.require(this.isBoundary(audit), 'I5', `${about} comes before the results of its turn`);
        world.require(!audit.steered.has(entry.requestId), 'I4', `${about} delivers ${entry.requestId} again`);
        audit.steered.add(entry.requestId);
        return;
      case 'model.started':
        if (audit.model && audit.model.key !== entry.key)
          world.violate('I5', `${about} begins ${entry.key} beside ${audit.model.key}`);
        world.require(
          audit.turn.every(({ state }) => state === 'done'),
          'I5',
          `${about}, ${entry.key}, comes before the result of ${audit.turn.find(({ state }) => state !== 'done')?.key}`,
        );
        audit.model = { key: entry.key, attempt: entry.attempt };
        return;
      case 'model.attempt_failed':
        audit.tokens += entry.usage?.totalTokens ?? 0;
        return;
      case 'model.completed':
        world.require(audit.model?.key === entry.key, 'I1', `${about}, ${entry.key}, has no intent`);
        audit.model = null;
        audit.tokens += entry.usage.totalTokens ?? 0;
        audit.turn = entry.calls.map(({ key, name, recovery, approval, questions }) => ({
          key,
          name,
          policy: recovery,
          state: approval || questions ? 'gated' : 'ready',
          attempt: 0,
          excused: 0,
          output: undefined,
          completed: false,
        }));
        for (const call of audit.turn) audit.calls.set(call.key, call);
        return;
      default:
        this.ofCall(runId, audit, entry, about);
    }
  }

  private ofCall(runId: string, audit: RunAudit, entry: JournalEntry, about: string): void {
    const { world } = this;
    if (!('key' in entry) || entry.key === null) return;
    const call = audit.calls.get(entry.key);
    if (!call || entry.type === 'operation.late_result') return;
    const named = `${about}, ${entry.key} (${call.name}),`;
    switch (entry.type) {
      case 'tool.started':
        world.require(call.state !== 'gated', 'I7', `${named} was not decided yet`);
        world.require(call.state !== 'done', 'I5', `${named} follows its result`);
        world.require(
          call.policy === null || stricterOf(call.policy, entry.recovery) === entry.recovery,
          'I8',
          `${named} has the policy ${entry.recovery}, ${call.policy} was recorded`,
        );
        call.policy = entry.recovery;
        call.state = 'started';
        call.attempt = entry.attempt;
        return;
      case 'tool.released':
        call.state = 'ready';
        return;
      case 'tool.completed':
        world.require(call.state === 'started', 'I1', `${named} ends a call that is ${call.state}`);
        call.output = entry.output;
        call.completed = true;
        return this.done(call, named);
      case 'tool.failed':
        world.require(!STORE_CODES.has(entry.error.code), 'I10', `${named}: ${entry.error.code}`);
        return this.done(call, named);
      case 'tool.denied':
        return this.done(call, named);
      case 'tool.uncertain':
        if (entry.reportedToModel) return this.done(call, named);
        call.state = 'uncertain';
        return;
      case 'tool.probed':
      case 'tool.resolved': {
        const isOver =
          entry.type === 'tool.probed' ? entry.result === 'happened' : !('notHappened' in entry.resolution);
        if (isOver) return this.done(call, named);
        if (entry.type === 'tool.probed' && entry.result === 'unknown') return;
        call.excused = this.ledger.entries(`${runId}/${entry.key}`);
        call.state = 'ready';
        return;
      }
      case 'interaction.answered':
      case 'interaction.expired': {
        world.require(!audit.decided.has(entry.interactionId), 'I7', `${named} decides ${entry.interactionId} again`);
        audit.decided.add(entry.interactionId);
        if (call.state !== 'gated') return;
        const isApproved = 'decision' in entry.decision && entry.decision.decision === 'approve';
        call.state = isApproved ? 'ready' : 'done';
        return;
      }
      default:
    }
  }

  private done(call: CallAudit, named: string): void {
    this.world.require(call.state !== 'done', 'I5', `${named} is a second result`);
    call.state = 'done';
  }

  private isBoundary({ model, turn }: RunAudit): boolean {
    return model === null && turn.every(({ state }) => state === 'done');
  }

  /** I7: decided once, not too late, and not expired too early. */
  private interaction({ interaction }: Extract<TablesChange, { kind: 'interaction' }>): void {
    const { id, status, expiresAt, decidedAt } = interaction;
    const before = this.asks.get(id);
    this.asks.set(id, status);
    if (status === before || status === 'pending' || status === 'cancelled' || status === 'used') return;
    this.world.require(before === 'pending', 'I7', `${id} was ${before}, and becomes ${status}`);
    if (expiresAt === null || decidedAt === null) return;
    if (status === 'expired') this.world.require(expiresAt <= decidedAt, 'I7', `${id} expires before its time`);
    else this.world.require(expiresAt > decidedAt, 'I7', `${id} is ${status} after it expired`);
  }

  private run(runId: string, before: RunRecord | undefined): void {
    const { tables } = this.database;
    const run = tables.runs.get(runId);
    if (!run) return;
    const audit = this.of(runId);
    this.world.require(
      isSettled(run.status) === (audit.settledBy !== null),
      'I4',
      `run ${runId} is ${run.status}, its journal says ${audit.settledBy}`,
    );
    if (run.status !== before?.status && run.sessionId !== null && run.sessionMode === 'serial') this.session(run);
  }

  /** I6: one at a time, first in first out. */
  private session({ sessionId, id, sessionOrder, status }: RunRecord): void {
    const ofSession = [...this.database.tables.runs.values()].filter((run) => run.sessionId === sessionId);
    const active = ofSession.filter((run) => run.status !== 'queued' && !isSettled(run.status));
    this.world.require(
      active.length <= 1,
      'I6',
      `runs ${active.map((run) => run.id).join(', ')} of session ${sessionId} are under way at once`,
    );
    if (status === 'queued' || isSettled(status) || this.of(id).isAgain) return;
    const earlier = ofSession.find((run) => run.status === 'queued' && (run.sessionOrder ?? 0) < (sessionOrder ?? 0));
    this.world.require(!earlier, 'I6', `run ${id} of session ${sessionId} is begun before ${earlier?.id}`);
  }
}
