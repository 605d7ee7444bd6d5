import { isRecord } from '../../contracts/json.js';
import type { StartOptions } from '../../contracts/run-requests.js';
import {
  exactlyOneOf,
  type Fields,
  type Given,
  has,
  invalidRequest,
  type ObjectField,
  object,
  omit,
  oneOf,
  onlyWith,
  readRequest,
  required,
  wholeNumber,
} from '../../contracts/schema.js';
import {
  agentName,
  EVENTS,
  GRANT,
  INTERACTION_LIST,
  LIST,
  NOTE,
  RESOLUTION,
  RESPONSE,
  RESTART,
  RESUME,
  RETRY,
  START,
  STEER,
} from '../../engine/requests/request-schemas.js';

// The bodies and queries of the routes: the requests to `RunService`, without what only the actor may say.

export const START_BODY = object(
  {
    agent: required(agentName()),
    ...omit(START, 'agent', 'actor', 'sessionOwner', 'ifExists', 'deadline', 'maxDuration').fields,
  },
  exactlyOneOf('prompt', 'messages'),
);

export const REASON_BODY = omit(NOTE, 'by');

/** A takeover needs a reason: `reason`, or `confirmation: { reason }`. */
export const RESUME_BODY = object(
  {
    ...omit(RESUME, 'by', 'wait', 'confirmation').fields,
    confirmation: object({ reason: RESUME.fields.confirmation.fields.reason }),
  },
  (given, report) => {
    if (given['allowRunningTakeover'] === true && !has(given, 'reason') && !has(given, 'confirmation'))
      report('is required to take a run from its owner', 'reason');
  },
);

export const RETRY_BODY = omit(RETRY, 'by');
export const RESTART_BODY = omit(RESTART, 'by');
export const RESOLUTION_BODY = omit(RESOLUTION, 'by');
export const DECISION_BODY = omit(RESPONSE, 'by', 'roles');
export const STEER_BODY = omit(STEER, 'sender');

export const BUDGET_BODY = object(
  {
    decision: required(oneOf(['grant', 'deny'], { description: '`deny` ends the run.' })),
    ...omit(GRANT, 'by').fields,
  },
  onlyWith('amount', 'decision', 'grant'),
);

export const LIST_QUERY = LIST;
export const INTERACTION_LIST_QUERY = INTERACTION_LIST;
export const EVENT_QUERY = EVENTS;

const MAX_WAIT_SECONDS = 60;

export const WAIT_QUERY = object({
  wait: wholeNumber({
    minimum: 0,
    maximum: MAX_WAIT_SECONDS,
    description: 'Answer when the run is settled or suspended, or after so many seconds.',
  }),
});

/** Without a body everything is left out. @throws InvalidRequestError */
export function readBody<F extends Fields>(schema: ObjectField<F>, body: unknown): Given<F> {
  const value = body === undefined ? {} : body;
  return readRequest(schema, isPlain(value) ? value : null, { root: '(body)' });
}

/** @throws InvalidRequestError */
export function readQuery<F extends Fields>(schema: ObjectField<F>, query: unknown): Given<F> {
  return readRequest(schema, query ?? {}, { root: '(query)', isQuery: true });
}

/** @param maxPathId characters of the longest id that the server routes. @throws InvalidRequestError */
export function readStartBody(body: unknown, maxPathId: number): StartOptions {
  const start = readBody(START_BODY, body);
  const problem = `must have at most ${maxPathId} characters, for this server finds no longer one in a path (maxParamLength)`;
  const tooLong = (['sessionId', 'runId'] as const).filter((field) => (start[field]?.length ?? 0) > maxPathId);
  if (tooLong.length > 0) throw invalidRequest(tooLong.map((field) => ({ field, problem })));
  return start;
}

/** As a parser makes it: nothing stands behind the prototype of a body. */
function isPlain(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
