/** Asks a run commits before anybody is told (PPL-1, PPL-2): built from the call as it will be executed, bound to its digest (I7). */
import type { Interaction } from '../contracts/interaction.js';
import type { JournalEntry } from '../contracts/journal-entry.js';
import type { Digester } from '../contracts/ports/digester.port.js';
import type { RunRecord } from '../contracts/run.js';
import type { CallState } from './journal/run-state.js';

/** Default life of an ask: 24 h. */
const DEFAULT_EXPIRY_MS = 86_400_000;

export function askFor(call: CallState, run: RunRecord, now: number, digester: Digester): Interaction {
  const bound = {
    run: run.id,
    key: call.key,
    agent: `${run.agent}@${run.version}`,
    tool: `${call.name}@${call.toolVersion ?? ''}`,
    arguments: call.input,
  };
  const expiresInMs = call.approval?.expiresInMs === undefined ? DEFAULT_EXPIRY_MS : call.approval.expiresInMs;
  return {
    id: `ask_${digester.digest(`${run.id}/${call.key}`).slice(0, 24)}`,
    runId: run.id,
    sessionId: run.sessionId,
    agent: run.agent,
    version: run.version,
    kind: 'approval',
    status: 'pending',
    operationKey: call.key,
    callId: call.callId,
    tool: call.name,
    arguments: call.input,
    digest: digester.digest(digester.canonical(bound)),
    reason: call.approval?.reason ?? null,
    risk: call.approval?.risk ?? null,
    approverRole: call.approval?.approverRole ?? null,
    questions: null,
    decision: null,
    createdAt: now,
    expiresAt: expiresInMs === null ? null : now + expiresInMs,
    decidedAt: null,
  };
}

export function requestedEntry(ask: Interaction, at: number): JournalEntry {
  return {
    type: 'interaction.requested',
    at,
    interactionId: ask.id,
    key: ask.operationKey,
    detail: { kind: ask.kind, digest: ask.digest, expiresAt: ask.expiresAt },
  };
}
