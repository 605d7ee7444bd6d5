/** Reads what `start` was given, field by field, and says everything that is wrong with it at once. Nothing here trusts a type. */
import { parseDuration } from '../../contracts/duration.js';
import { isIdentifier } from '../../contracts/identifier.js';
import type { JsonValue } from '../../contracts/json.js';
import type { Actor } from '../../contracts/actor.js';
import type { Message } from '../../contracts/message.js';
import { metadataProblems } from '../../contracts/run-metadata.js';
import type { RunMetadata } from '../../contracts/run.js';
import type { StartOptions } from '../../contracts/run-requests.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { InvalidRequestError } from '../../errors/request.errors.js';
import { truncateText } from '../values/truncate-text.js';
import { readMessages } from './read-messages.js';
import { requireFit } from './require-fit.js';

export interface FieldProblem {
  field: string;
  problem: string;
}

export interface StartInput {
  messages: Message[];
  sessionId: string | null;
  sessionOwner: string | null;
  requestId: string | null;
  runId: string | null;
  ifExists: 'reject' | 'resume' | 'restart';
  enqueue: boolean;
  maxTotalTokens: number | null;
  metadata: RunMetadata;
  actor: Actor | null;
  deadlineAt: number | null;
  maxDurationMs: number | null;
}

const KNOWN: ReadonlySet<string> = new Set<keyof StartOptions>([
  'agent',
  'version',
  'prompt',
  'messages',
  'sessionId',
  'sessionOwner',
  'requestId',
  'runId',
  'ifExists',
  'enqueue',
  'budget',
  'metadata',
  'actor',
  'deadline',
  'maxDuration',
]);
const ID_RULE = 'must be 1-128 characters of A-Z a-z 0-9 . _ : -';

/** @throws InvalidRequestError, PayloadTooLargeError */
export function readStartOptions(options: StartOptions, maxPayloadBytes: number): StartInput {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw invalid([{ field: '', problem: 'start takes an object' }]);
  const problems: FieldProblem[] = [];
  for (const field of Object.keys(options)) if (!KNOWN.has(field)) problems.push({ field, problem: 'is not known' });
  const given = options as { [Field in keyof StartOptions]?: unknown };
  const messages = readMessages(given.prompt, given.messages, problems);
  const input: StartInput = {
    messages,
    sessionId: readId('sessionId', given.sessionId, problems),
    sessionOwner: readSessionOwner(given.sessionOwner, problems),
    requestId: readId('requestId', given.requestId, problems),
    runId: readId('runId', given.runId, problems),
    ifExists: given.ifExists === 'resume' || given.ifExists === 'restart' ? given.ifExists : 'reject',
    enqueue: given.enqueue === true,
    maxTotalTokens: readBudget(given.budget, problems),
    metadata: readMetadata(given.metadata, problems),
    actor: readActor(given.actor, problems),
    deadlineAt: given.deadline === null ? null : readDate('deadline', given.deadline, problems),
    maxDurationMs: given.maxDuration === null ? null : readDuration('maxDuration', given.maxDuration, problems),
  };
  if (given.version !== undefined && typeof given.version !== 'string')
    problems.push({ field: 'version', problem: 'must be text' });
  if (given.ifExists !== undefined && !['reject', 'resume', 'restart'].includes(given.ifExists as string))
    problems.push({ field: 'ifExists', problem: "must be 'reject', 'resume' or 'restart'" });
  if (given.enqueue !== undefined && typeof given.enqueue !== 'boolean')
    problems.push({ field: 'enqueue', problem: 'must be true or false' });
  if (problems.length > 0) throw invalid(problems);
  const field = given.prompt === undefined ? 'messages' : 'prompt';
  requireFit('The prompt', input.messages, maxPayloadBytes, { field });
  requireFit('The actor', input.actor, maxPayloadBytes, { field: 'actor' });
  return input;
}

/** How many of a request's problems are told. */
const MAX_FIELDS = 50;

export function invalid(problems: FieldProblem[]): InvalidRequestError {
  const fields = problems
    .slice(0, MAX_FIELDS)
    .map(({ field, problem }) => ({ field: truncateText(field, 200), problem }));
  const words = fields.map(({ field, problem }) => `${field === '' ? 'the request' : field} ${problem}`).join('; ');
  return new InvalidRequestError(`The request is not valid: ${words}.`, { details: { fields } });
}

function readId(field: string, value: unknown, problems: FieldProblem[]): string | null {
  if (value === undefined) return null;
  if (isIdentifier(value)) return value;
  problems.push({ field, problem: ID_RULE });
  return null;
}

/** Null only where none is given: an owner that is no text must not pass for no owner. */
export function readSessionOwner(value: unknown, problems: FieldProblem[]): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '') return value;
  problems.push({ field: 'sessionOwner', problem: 'must be text that is not empty' });
  return null;
}

/** @throws InvalidRequestError for anything that is no id */
export function requireId(field: string, value: unknown): string {
  if (!isIdentifier(value)) throw invalid([{ field, problem: ID_RULE }]);
  return value;
}

export function readBudget(value: unknown, problems: FieldProblem[]): number | null {
  if (value === undefined) return null;
  const limit = isRecord(value) && Object.keys(value).length === 1 ? value.maxTotalTokens : undefined;
  if (typeof limit === 'number' && Number.isSafeInteger(limit) && limit > 0) return limit;
  problems.push({ field: 'budget', problem: 'must be { maxTotalTokens: a whole number above 0 }' });
  return null;
}

export function readMetadata(value: unknown, problems: FieldProblem[], maxKeys?: number): RunMetadata {
  if (value === undefined) return {};
  if (!isRecord(value)) {
    problems.push({ field: 'metadata', problem: 'must be a flat object' });
    return {};
  }
  problems.push(...metadataProblems(value, maxKeys));
  return Object.fromEntries(Object.entries(value)) as RunMetadata;
}

function readActor(value: unknown, problems: FieldProblem[]): Actor | null {
  if (value === undefined || value === null) return null;
  const { id, roles } = isRecord(value) ? value : {};
  const rolesFit = roles === undefined || (Array.isArray(roles) && roles.every((role) => typeof role === 'string'));
  if (typeof id === 'string' && id !== '' && rolesFit) return { id, ...(roles !== undefined && { roles: [...roles] }) };
  problems.push({ field: 'actor', problem: 'must be { id: text, roles?: list of text }' });
  return null;
}

/** Epoch ms; null where none is given. */
export function readDate(field: string, value: unknown, problems: FieldProblem[]): number | null {
  if (value === undefined) return null;
  const at = value instanceof Date ? value.getTime() : Number.NaN;
  if (Number.isSafeInteger(at) && at >= 0) return at;
  problems.push({ field, problem: 'must be a valid Date from 1970 on' });
  return null;
}

/** Ms; null where none is given. */
export function readDuration(field: string, value: unknown, problems: FieldProblem[]): number | null {
  if (value === undefined) return null;
  try {
    return parseDuration(value as string, field);
  } catch (error) {
    problems.push({ field, problem: AgentRunsError.is(error) ? error.message : 'is no duration' });
    return null;
  }
}

/** @throws InvalidRequestError for options that are no object */
export function requireOptions(options: unknown): void {
  if (!isRecord(options)) throw invalid([{ field: '', problem: 'takes options that are an object' }]);
}

export function isRecord(value: unknown): value is Record<string, JsonValue | undefined> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
