/** Reads a decision. Nothing but the literal words is one: no coercion, no case folding, no lists. */
import type { InteractionDecision } from '../../contracts/interaction.js';
import type { JsonObject } from '../../contracts/json.js';
import type { InteractionResponse } from '../../contracts/run-requests.js';
import { readJson } from './read-json.js';
import { invalid, isRecord, type FieldProblem } from './read-start-options.js';

const MAX_BYTES = 1_048_576;
const APPROVAL_FIELDS: ReadonlySet<string> = new Set(['decision', 'by', 'roles', 'note', 'arguments']);
const ANSWER_FIELDS: ReadonlySet<string> = new Set(['action', 'by', 'roles', 'note', 'answers']);

export interface ReadResponse {
  decision: InteractionDecision;
  /** Of whoever decides; null: the caller has looked. */
  roles: readonly string[] | null;
}

/** @throws InvalidRequestError */
export function readResponse(response: InteractionResponse): ReadResponse {
  if (!isRecord(response)) throw invalid([{ field: '', problem: 'must be an object with a decision or an action' }]);
  const value = response as Record<string, unknown>;
  const problems: FieldProblem[] = [];
  const isApproval = Object.hasOwn(value, 'decision');
  if (isApproval === Object.hasOwn(value, 'action'))
    problems.push({ field: 'decision', problem: 'or action must be given, exactly one of them' });
  const known = isApproval ? APPROVAL_FIELDS : ANSWER_FIELDS;
  for (const field of Object.keys(value)) if (!known.has(field)) problems.push({ field, problem: 'is not known' });
  const { by } = value;
  if (typeof by !== 'string' || by === '') problems.push({ field: 'by', problem: 'must say who decides' });
  if (value.note !== undefined && typeof value.note !== 'string')
    problems.push({ field: 'note', problem: 'must be text' });
  const roles = readRoles(value, problems);
  const note = typeof value.note === 'string' ? { note: value.note } : {};
  const decision = isApproval
    ? readApproval(value, String(by), note, problems)
    : readAnswer(value, String(by), note, problems);
  if (problems.length > 0 || !decision) throw invalid(problems);
  return { decision, roles };
}

/** An `undefined` from an account without roles is not "nothing to compare": it would open what a role keeps closed. */
function readRoles(value: Record<string, unknown>, problems: FieldProblem[]): string[] | null {
  if (!Object.hasOwn(value, 'roles')) return null;
  const { roles } = value;
  if (Array.isArray(roles) && roles.every((role) => typeof role === 'string')) return roles;
  problems.push({ field: 'roles', problem: 'must be a list of texts, empty for somebody without roles' });
  return null;
}

function readApproval(
  value: Record<string, unknown>,
  by: string,
  note: { note?: string },
  problems: FieldProblem[],
): InteractionDecision | null {
  if (value.decision !== 'approve' && value.decision !== 'deny') {
    problems.push({ field: 'decision', problem: "must be 'approve' or 'deny'" });
    return null;
  }
  if (value.arguments === undefined) return { decision: value.decision, by, ...note };
  if (value.decision === 'deny') problems.push({ field: 'arguments', problem: 'can only be given with approve' });
  const edited = readObject('arguments', value.arguments, problems);
  return edited && { decision: 'approve', by, ...note, arguments: edited };
}

function readAnswer(
  value: Record<string, unknown>,
  by: string,
  note: { note?: string },
  problems: FieldProblem[],
): InteractionDecision | null {
  const { action } = value;
  if (action === 'decline' || action === 'cancel') {
    if (value.answers !== undefined) problems.push({ field: 'answers', problem: 'can only be given with accept' });
    return { action, by, ...note };
  }
  if (action !== 'accept') {
    problems.push({ field: 'action', problem: "must be 'accept', 'decline' or 'cancel'" });
    return null;
  }
  const answers = readObject('answers', value.answers, problems);
  return answers && { action: 'accept', by, ...note, answers };
}

function readObject(field: string, value: unknown, problems: FieldProblem[]): JsonObject | null {
  if (isRecord(value)) return (readJson(field, value, problems, MAX_BYTES) as JsonObject | undefined) ?? null;
  problems.push({ field, problem: 'must be an object' });
  return null;
}
