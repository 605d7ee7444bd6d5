// What must hold of every run at rest, whatever happened to it: a fresh fold of its journal says what the row says, and the journal contradicts itself nowhere.
import assert from 'node:assert/strict';
import type { Interaction } from '../../lib/contracts/interaction.js';
import type { JournalEntry, SequencedEntry } from '../../lib/contracts/journal-entry.js';
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import type { RunRecord } from '../../lib/contracts/run.js';
import { isSettled } from '../../lib/contracts/run-status.js';
import { JournalFold } from '../../lib/engine/journal/fold-journal.js';
import { emptyState } from '../../lib/engine/journal/run-state.js';
import { readHistory } from '../../lib/engine/sessions.js';
import { Sha256Digester } from '../../lib/system/system-ports.js';

/** @throws AssertionError naming what does not hold */
export async function assertSound(store: RunStore, runId: string): Promise<void> {
  const fold = new JournalFold(new Sha256Digester());
  const read = await store.readJournal(runId, 0, 100_000);
  assert.ok(read, `run ${runId} is there`);
  const { run, entries } = read;
  const state = emptyState(runId);
  fold.begin(state, (await readHistory(store, fold, run.sessionId, run.historyRunId)).messages);
  entries.forEach((entry, index) => {
    assert.equal(entry.sequence, index + 1, 'sequences have no gap');
    if (entry.type === 'model.started' && state.model?.key !== entry.key)
      assert.deepEqual(
        state.calls.filter(({ status }) => status !== 'done').map(({ key }) => key),
        [],
        `${entry.key} is begun with every call answered (I5)`,
      );
    fold.apply(state, entry);
  });
  assert.equal(run.sequence, entries.length, 'the row stands at the last entry');
  assert.deepEqual(run.totals, state.totals, 'totals of the row are those of a fresh fold');
  assert.equal(state.drift, null, 'every recorded request digest is that of a fresh fold');
  assertResults(entries);
  await assertAsks(store, run, entries);
  assertSettledOnce(run, entries);
}

const RESULTS = new Set<JournalEntry['type']>(['tool.completed', 'tool.failed', 'tool.denied']);

/** I5, STR-1, PPL-1: one result a call, nothing gated begun before it was approved, nothing delivered twice. */
function assertResults(entries: readonly SequencedEntry[]): void {
  const gated = new Set<string>();
  const finished = new Map<string, number>();
  const steered: string[] = [];
  for (const entry of entries) {
    if (entry.type === 'model.completed') for (const { key, approval } of entry.calls) if (approval) gated.add(key);
    if (entry.type === 'interaction.answered' && 'decision' in entry.decision && entry.decision.decision === 'approve')
      gated.delete(entry.key);
    if (entry.type === 'tool.started') assert.ok(!gated.has(entry.key), `${entry.key} is begun after its approval`);
    if (RESULTS.has(entry.type)) {
      const { key } = entry as { key: string };
      finished.set(key, (finished.get(key) ?? 0) + 1);
    }
    if (entry.type === 'run.steered') steered.push(entry.requestId);
  }
  for (const [key, count] of finished) assert.equal(count, 1, `${key} has one result`);
  assert.equal(new Set(steered).size, steered.length, 'each message is delivered once');
}

/** I7, I11: asks are told once, decided once, and nobody waits for something already answered. */
async function assertAsks(store: RunStore, run: RunRecord, entries: readonly SequencedEntry[]): Promise<void> {
  const asks = await allInteractions(store, run.id);
  const idsOf = (...types: JournalEntry['type'][]): string[] =>
    entries.flatMap((entry) =>
      types.includes(entry.type) ? [(entry as { interactionId: string }).interactionId] : [],
    );
  const requested = idsOf('interaction.requested');
  const decided = idsOf('interaction.answered', 'interaction.expired');
  assert.equal(new Set(requested).size, requested.length, 'each ask is told once');
  assert.equal(new Set(decided).size, decided.length, 'each ask is decided once');
  for (const { id, status, decision } of asks) {
    assert.ok(requested.includes(id), `${id} was told before anybody could see it`);
    if (status !== 'cancelled') assert.equal(decision === null, status === 'pending', `${id} is ${status}`);
    if (status === 'pending') assert.ok(!decided.includes(id), `${id} is pending, and not journaled as decided`);
    if (status === 'used') assert.ok(decided.includes(id), `${id} is spent, so the run took it up`);
    if (decision && run.status === 'waiting') assert.ok(decided.includes(id), `the run took up the decision of ${id}`);
  }
  if (isSettled(run.status))
    assert.deepEqual(
      asks.filter(({ status }) => status === 'pending' || status === 'approved').map(({ id }) => id),
      [],
      'a settled run has every ask answered, spent or withdrawn',
    );
}

/** I4: each part of a run is settled once, and a retry of a failed one is told. */
function assertSettledOnce(run: RunRecord, entries: readonly SequencedEntry[]): void {
  let settled: string | null = null;
  for (const { type } of entries) {
    const status = SETTLED_BY[type as keyof typeof SETTLED_BY];
    if (status !== undefined) {
      assert.equal(settled, null, `${type} comes once`);
      settled = status;
    } else if (type === 'run.restarted' || type === 'run.retried') settled = null;
    else if (settled !== null) assert.equal(type, 'operation.late_result', `nothing but evidence follows ${settled}`);
  }
  assert.equal(settled, isSettled(run.status) ? run.status : null, 'the journal and the row agree on how it ended');
}

const SETTLED_BY = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
  'run.blocked': 'blocked',
  'run.timed_out': 'timed_out',
} as const;

export async function allInteractions(store: RunStore, runId: string): Promise<Interaction[]> {
  const all: Interaction[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await store.interactions({ runId, limit: 100, ...(cursor !== undefined && { cursor }) });
    all.push(...page.items);
    if (page.nextCursor === undefined) return all;
    cursor = page.nextCursor;
  }
}
