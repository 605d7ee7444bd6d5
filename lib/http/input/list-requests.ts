/** The queries of lists. Only `status` may be repeated; a filter that is not understood is refused, because without it the list would be longer. */
import { given } from '../../contracts/given-fields.js';
import { INTERACTION_STATUSES } from '../../contracts/interaction.js';
import { isMetadataKey, isMetadataText, MAX_METADATA_TEXT } from '../../contracts/run-metadata.js';
import type { ListOptions, PendingInteractionsOptions } from '../../contracts/run-requests.js';
import type { RunMetadata } from '../../contracts/run.js';
import { RUN_PHASES, RUN_STATUSES } from '../../contracts/run-status.js';
import { IDENTIFIER, MAX_CURSOR, MAX_LIST, MAX_NAME, MAX_NOTE } from './field-rules.js';
import { RequestFields } from './request-fields.js';

const METADATA_PREFIX = 'metadata.';

export function readList(query: unknown): ListOptions {
  return RequestFields.read(query, (fields) =>
    given({
      ...readFilter(fields),
      status: fields.choices('status', RUN_STATUSES),
      phase: fields.choice('phase', RUN_PHASES),
    }),
  );
}

export function readInteractionList(query: unknown): PendingInteractionsOptions {
  return RequestFields.read(query, (fields) =>
    given({
      ...readFilter(fields),
      status: fields.choices('status', INTERACTION_STATUSES),
      runId: fields.text('runId', { pattern: IDENTIFIER }),
      approverRole: fields.text('approverRole', { notBlank: true, maxLength: MAX_NOTE }),
    }),
  );
}

/** What lists of runs and of interactions have in common. */
function readFilter(fields: RequestFields) {
  return {
    sessionId: fields.text('sessionId', { pattern: IDENTIFIER }),
    agent: fields.text('agent', { notBlank: true, maxLength: MAX_NAME }),
    actor: fields.text('actor', { notBlank: true, maxLength: MAX_NOTE }),
    metadata: readMetadataFilter(fields),
    createdSince: fields.instant('createdSince'),
    createdBefore: fields.instant('createdBefore'),
    after: fields.text('after', { notBlank: true, maxLength: MAX_CURSOR }),
    limit: fields.digits('limit', 1, MAX_LIST),
  };
}

function readMetadataFilter(fields: RequestFields): RunMetadata | undefined {
  const entries = fields
    .names()
    .filter((name) => name.startsWith(METADATA_PREFIX))
    .map((name) => {
      const key = name.slice(METADATA_PREFIX.length);
      if (!isMetadataKey(key)) fields.report(name, `as a key ${IDENTIFIER.words}`);
      const value = fields.text(name);
      if (value !== undefined && !isMetadataText(value))
        fields.report(name, `must have at most ${MAX_METADATA_TEXT} characters`);
      return [key, value] as const;
    });
  return entries.length > 0 ? (Object.fromEntries(entries) as RunMetadata) : undefined;
}
