import type { InteractionDecision } from '../../contracts/interaction.js';
import type { EntryOf } from '../../contracts/journal-entry.js';
import type { InteractionQuery, ListQuery } from '../../contracts/ports/run-store.port.js';
import type {
  InteractionResponse,
  ListOptions,
  PendingInteractionsOptions,
  StartOptions,
  ToolResolution,
} from '../../contracts/run-requests.js';
import { statusesOf } from '../../contracts/run-status.js';
import { type Given, readRequest } from '../../contracts/schema.js';
import { requireFit } from './payload.js';
import { userMessage } from './prompt-messages.js';
import { DEFAULT_PAGE, INTERACTION_LIST, LIST, RESOLUTION, RESPONSE, START } from './request-schemas.js';

// Requests as the verbs work with them.

export type StartInput = ReturnType<typeof readStart>;

/** @throws InvalidRequestError, PayloadTooLargeError */
export function readStart(options: StartOptions, maxPayloadBytes: number) {
  const given = readRequest(START, options);
  const messages = given.messages ?? [userMessage(given.prompt as string)];
  const actor = given.actor ?? null;
  requireFit('The prompt', messages, maxPayloadBytes, { field: given.messages ? 'messages' : 'prompt' });
  requireFit('The actor', actor, maxPayloadBytes, { field: 'actor' });
  return {
    messages,
    sessionId: given.sessionId ?? null,
    sessionOwner: given.sessionOwner ?? null,
    requestId: given.requestId ?? null,
    runId: given.runId ?? null,
    ifExists: given.ifExists ?? 'reject',
    enqueue: given.enqueue ?? false,
    maxTotalTokens: given.budget?.maxTotalTokens ?? null,
    metadata: given.metadata ?? {},
    actor,
    deadlineAt: given.deadline?.getTime() ?? null,
    maxDurationMs: given.maxDuration ?? null,
  };
}

/** The filter of a list of runs as stores take it. @throws InvalidRequestError */
export function readList(options: ListOptions): ListQuery {
  const { status, phase, ...filter } = readRequest(LIST, options);
  const statuses = phase === undefined ? status : statusesOf(phase).filter((one) => status?.includes(one) ?? true);
  return { ...queryOf(filter), ...(statuses && { statuses }) };
}

/** The filter of a list of interactions as stores take it. @throws InvalidRequestError */
export function readInteractionList(options: PendingInteractionsOptions): InteractionQuery {
  const { status: statuses = ['pending'], runId, approverRole, ...filter } = readRequest(INTERACTION_LIST, options);
  return {
    ...queryOf(filter),
    ...(runId !== undefined && { runId }),
    ...(approverRole !== undefined && { approverRole }),
    statuses,
  };
}

type Filter = Omit<Given<typeof LIST.fields>, 'status' | 'phase'>;

function queryOf({ limit = DEFAULT_PAGE, actor, after, createdSince, createdBefore, metadata, ...texts }: Filter) {
  return {
    limit,
    ...texts,
    ...(actor !== undefined && { actorId: actor }),
    ...(after !== undefined && { cursor: after }),
    ...(createdSince && { createdSince: createdSince.getTime() }),
    ...(createdBefore && { createdBefore: createdBefore.getTime() }),
    ...(metadata && Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** @returns the roles of whoever decides; null: the caller has compared them already. @throws InvalidRequestError */
export function readResponse(response: InteractionResponse) {
  const { roles = null, ...decision } = readRequest(RESPONSE, response);
  return { decision: decision as InteractionDecision, roles };
}

/** @throws InvalidRequestError, PayloadTooLargeError */
export function readResolution(
  resolution: ToolResolution,
  maxPayloadBytes: number,
): Omit<EntryOf<'tool.resolved'>, 'at'> {
  const { key, by, note, ...outcome } = readRequest(RESOLUTION, resolution);
  const entry: Omit<EntryOf<'tool.resolved'>, 'at'> = {
    type: 'tool.resolved',
    key,
    resolution: outcome as EntryOf<'tool.resolved'>['resolution'],
    by,
    ...(note !== undefined && { note }),
    reconciled: true,
  };
  requireFit('The resolution', entry, maxPayloadBytes);
  return entry;
}
