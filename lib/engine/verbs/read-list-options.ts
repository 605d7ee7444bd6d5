import { given } from '../../contracts/given-fields.js';
import { INTERACTION_STATUSES } from '../../contracts/interaction.js';
import type { InteractionQuery, ListQuery } from '../../contracts/ports/run-store.port.js';
import { MAX_METADATA_FILTERS } from '../../contracts/run-metadata.js';
import type { ListFilter, ListOptions, PendingInteractionsOptions } from '../../contracts/run-requests.js';
import { RUN_PHASES, RUN_STATUSES, statusesOf } from '../../contracts/run-status.js';
import { invalid, readDate, readMetadata, requireOptions, type FieldProblem } from './read-start-options.js';

const MAX_PAGE = 100;
const DEFAULT_PAGE = 50;

/** The filter of a list of runs as stores take it. @throws InvalidRequestError with all problems */
export function readListOptions(options: ListOptions): ListQuery {
  requireOptions(options);
  const problems: FieldProblem[] = [];
  const { status, phase, ...shared } = options;
  const wanted = readStatuses(status, RUN_STATUSES, problems);
  if (phase !== undefined && !RUN_PHASES.includes(phase))
    problems.push({ field: 'phase', problem: `must be one of ${RUN_PHASES.join(', ')}` });
  const statuses = phase === undefined ? wanted : statusesOf(phase).filter((one) => wanted?.includes(one) ?? true);
  const query = { ...readFilter(shared, problems), ...given({ statuses }) };
  if (problems.length > 0) throw invalid(problems);
  return query;
}

/** The filter of a list of interactions as stores take it. @throws InvalidRequestError with all problems */
export function readInteractionListOptions(options: PendingInteractionsOptions): InteractionQuery {
  requireOptions(options);
  const problems: FieldProblem[] = [];
  const { status = 'pending', runId, approverRole, ...shared } = options;
  const statuses = readStatuses(status, INTERACTION_STATUSES, problems);
  const query = {
    ...readFilter(shared, problems),
    ...readTexts({ runId, approverRole }, problems),
    ...given({ statuses }),
  };
  if (problems.length > 0) throw invalid(problems);
  return query;
}

/** A filter that is not known, or is none, is refused: left out, it would match everything. */
function readFilter(filter: ListFilter, problems: FieldProblem[]) {
  const { limit = DEFAULT_PAGE, sessionId, agent, actor, after, createdSince, createdBefore, ...others } = filter;
  const { metadata: pairs, ...unknown } = others;
  for (const field of Object.keys(unknown)) problems.push({ field, problem: 'is not known' });
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    problems.push({ field: 'limit', problem: `must be a whole number from 1 to ${MAX_PAGE}` });
  const metadata = readMetadata(pairs, problems, MAX_METADATA_FILTERS);
  const { actor: actorId, after: cursor, ...texts } = readTexts({ sessionId, agent, actor, after }, problems);
  return {
    limit,
    ...texts,
    ...given({
      actorId,
      cursor,
      createdSince: readDate('createdSince', createdSince, problems) ?? undefined,
      createdBefore: readDate('createdBefore', createdBefore, problems) ?? undefined,
      metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    }),
  };
}

/** @returns those that are given */
function readTexts<Field extends string>(
  fields: Record<Field, unknown>,
  problems: FieldProblem[],
): { [F in Field]?: string } {
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      problems.push({ field, problem: 'must be text' });
  return given(fields) as { [F in Field]?: string };
}

/** @returns them without repetitions; undefined where none is given */
function readStatuses<S extends string>(status: unknown, all: readonly S[], problems: FieldProblem[]): S[] | undefined {
  if (status === undefined) return undefined;
  const wanted: unknown[] = Array.isArray(status) ? status : [status];
  if (!wanted.every((one) => all.includes(one as S)))
    problems.push({ field: 'status', problem: `must be one or several of ${all.join(', ')}` });
  return all.filter((one) => wanted.includes(one));
}
