import { INTERACTION_STATUSES } from '../../contracts/interaction.js';
import { MAX_METADATA_FILTERS } from '../../contracts/run-metadata.js';
import type {
  BudgetDecision,
  CallerNote,
  EventOptions,
  StreamOptions,
  ListFilter,
  ListOptions,
  PendingInteractionsOptions,
  RestartOptions,
  ResumeOptions,
  RetryOptions,
  SessionMessagesOptions,
  StartOptions,
  SteerOptions,
  WaitOptions,
} from '../../contracts/run-requests.js';
import { RUN_PHASES, RUN_STATUSES } from '../../contracts/run-status.js';
import {
  anything,
  duration,
  exactlyOneOf,
  type FieldsOf,
  field,
  flag,
  has,
  identifier,
  metadata,
  moment,
  nullable,
  object,
  oneOf,
  onlyWith,
  openObject,
  type RequiredField,
  type Rule,
  required,
  severalOf,
  text,
  texts,
  wholeNumber,
} from '../../contracts/schema.js';
import { json, jsonObject } from './payload.js';
import { PROMPT_MESSAGES } from './prompt-messages.js';

// What each request to `RunService` may say. HTTP takes the same, without what only the actor may say of itself.

/** Of reasons, notes and names of people, in UTF-16 units. */
const MAX_NOTE = 4_000;
const MAX_KEY = 400;
const MAX_CURSOR = 1_000;
/** UTF-8 bytes of edited arguments, and of answers. */
const MAX_RESPONSE_BYTES = 1_048_576;

export const DEFAULT_PAGE = 50;
const MAX_PAGE = 100;
export const MAX_EVENTS = 500;

export const agentName = (description?: string) => text({ maxLength: 128, ...(description && { description }) });
const person = text({ maxLength: MAX_NOTE });
const note = text({ maxLength: MAX_NOTE });
const reason = text({ maxLength: MAX_NOTE, description: 'Kept in the journal.' });
const sessionOwner = text({ maxLength: MAX_NOTE });
const budget = object({
  maxTotalTokens: required(wholeNumber({ description: 'Tokens, over the whole run.' })),
});

const VERSION = /^\d{1,9}(\.\d{1,9}){0,9}$/;

export const START = object(
  {
    // Whatever is no agent is answered with the agents that there are.
    agent: anything() as RequiredField<never>,
    version: field<string>(
      'whole numbers with dots, like 2 or 1.10',
      (value) => typeof value === 'string' && VERSION.test(value),
      { type: 'string', example: '2', description: 'Default: the highest registered.' },
    ),
    prompt: text(),
    messages: PROMPT_MESSAGES,
    sessionId: identifier(),
    sessionOwner,
    requestId: identifier('Idempotency key, unique per session, or per agent without one.'),
    runId: identifier('The id of the new run. Default: made by the server.'),
    ifExists: oneOf(['reject', 'resume', 'restart']),
    enqueue: flag({ description: 'Wait in line when the session is busy.' }),
    budget,
    metadata: metadata(),
    actor: nullable(openObject({ id: required(person), roles: texts() })),
    deadline: nullable(moment()),
    maxDuration: nullable(duration),
  } satisfies FieldsOf<StartOptions>,
  exactlyOneOf('prompt', 'messages'),
);

const filter = {
  sessionId: identifier(),
  agent: agentName(),
  actor: text({ maxLength: MAX_NOTE, description: 'Id of the actor who started the run.' }),
  metadata: metadata(MAX_METADATA_FILTERS),
  createdSince: moment('Created at this moment or later.'),
  createdBefore: moment('Created before this moment.'),
  after: text({ maxLength: MAX_CURSOR, description: 'nextCursor of the page before.' }),
  limit: wholeNumber({ minimum: 1, maximum: MAX_PAGE, description: `Default ${DEFAULT_PAGE}.` }),
} satisfies FieldsOf<ListFilter>;

export const LIST = object({
  ...filter,
  status: severalOf(RUN_STATUSES),
  phase: oneOf(RUN_PHASES),
} satisfies FieldsOf<ListOptions>);

export const INTERACTION_LIST = object({
  ...filter,
  status: severalOf(INTERACTION_STATUSES, { description: 'Default pending.' }),
  runId: identifier(),
  approverRole: text({ maxLength: MAX_NOTE }),
} satisfies FieldsOf<PendingInteractionsOptions>);

/** `s`, or `s.n` for what a stream shows between the entries `s` and `s + 1`. @returns `s` */
export function cursorOf(given: unknown): unknown {
  const [sequence] = typeof given === 'string' ? (/^\d{1,16}(?=(?:\.\d{1,9})?$)/.exec(given) ?? []) : [];
  return sequence === undefined ? given : Number(sequence);
}

export const EVENTS = object({
  after: {
    ...wholeNumber({ minimum: 0, description: 'Id of the last event already seen, default 0.' }),
    fromText: cursorOf,
  },
  limit: wholeNumber({ minimum: 1, maximum: MAX_EVENTS, description: `Default ${MAX_EVENTS}.` }),
  projection: oneOf(['full', 'lifecycle']),
} satisfies FieldsOf<Omit<EventOptions, 'after'> & { after?: number }>);

const signal = field<AbortSignal>(
  'an AbortSignal',
  (value) => typeof (value as AbortSignal | null)?.aborted === 'boolean',
);

export const STREAM = object({ projection: EVENTS.fields.projection, signal } satisfies FieldsOf<
  Omit<StreamOptions, 'after'>
>);

export const SESSION_MESSAGES = object({ sessionOwner } satisfies FieldsOf<SessionMessagesOptions>);

export const WAIT = object({
  timeout: duration,
  signal,
} satisfies FieldsOf<WaitOptions>);

const callerNote = { by: person, reason } satisfies FieldsOf<CallerNote>;

/** Of `cancel` and `interrupt`. */
export const NOTE = object(callerNote);

export const RESUME = object(
  {
    ...callerNote,
    budget: { ...budget, doc: { ...budget.doc, description: 'Replaces the stored limit.' } },
    allowRunningTakeover: flag({ description: 'Take the run from a live owner; off unless the server allows it.' }),
    confirmation: object({ by: required(person), reason: required(reason) }),
    wait: flag(),
  } satisfies FieldsOf<ResumeOptions>,
  (given, report) => {
    if (given['allowRunningTakeover'] === true && !has(given, 'confirmation'))
      report(
        'is required to take a run over: { by, reason }, who says that the owner is gone, and why',
        'confirmation',
      );
  },
);

export const RETRY = object({
  ...callerNote,
  maxTurns: wholeNumber({
    description: "The run's limit of model calls from now on; more than it has made.",
  }),
} satisfies FieldsOf<RetryOptions>);

export const RESTART = object({
  ...RETRY.fields,
  prompt: text({ description: 'Default: what the run was given before.' }),
} satisfies FieldsOf<RestartOptions>);

/** What a start with `ifExists: 'restart'` gives instead of a prompt. */
export const RESTART_MESSAGES = object({ messages: required(PROMPT_MESSAGES) });

const OPERATION_KEY = 'The run-local key, or the full operation id.';

/** An output that is `undefined` is what a method without a result gives. */
const oneOutcome: Rule = (given, report) =>
  exactlyOneOf(
    'output',
    'error',
    'notHappened',
  )(Object.hasOwn(given, 'output') ? { ...given, output: null } : given, report);

export const RESOLUTION = object(
  {
    key: required(text({ maxLength: MAX_KEY, description: OPERATION_KEY, example: 'r1.m1.t0' })),
    by: required(person),
    note,
    output: json({ type: 'object', nullable: true, description: 'What the call returned: any JSON value.' }),
    error: object({ message: required(text({ maxLength: MAX_NOTE })) }),
    notHappened: field<true>('true, or absent', (value) => value === true, {
      type: 'boolean',
      description: 'true: it had no effect and is made again under the same id.',
    }),
  },
  oneOutcome,
);

export const RESPONSE = object(
  {
    decision: oneOf(['approve', 'deny'], { description: 'For an approval.' }),
    action: oneOf(['accept', 'decline', 'cancel'], { description: 'For a question.' }),
    arguments: jsonObject(
      { description: 'With `approve`: replace those of the call, as a whole.' },
      MAX_RESPONSE_BYTES,
    ),
    answers: jsonObject({ description: 'With `accept`: one per question id.' }, MAX_RESPONSE_BYTES),
    by: required(person),
    // Undefined is not "nothing to compare": it would open to an account without roles what a role keeps closed.
    roles: { ...texts('a list of texts, empty for an account without roles'), judgesUndefined: true },
    note: text({ maxLength: MAX_NOTE, description: 'The model is told it with a refusal.' }),
  },
  exactlyOneOf('decision', 'action'),
  onlyWith('arguments', 'decision', 'approve'),
  onlyWith('answers', 'action', 'accept'),
  (given, report) => {
    if (given['action'] === 'accept' && !has(given, 'answers')) report('is required: one per question id', 'answers');
  },
);

export const STEER = object({
  message: required(text({ description: 'The model gets it as a user message at the next boundary.' })),
  requestId: identifier('Idempotency key within the run.'),
  sender: required(person),
} satisfies FieldsOf<SteerOptions & { message: string }>);

const budgetDecision = { by: required(person), note } satisfies FieldsOf<BudgetDecision>;

export const DENIAL = object(budgetDecision);

export const GRANT = object({
  amount: wholeNumber({ description: 'With `grant`: tokens to add. Default: what is missing.' }),
  ...budgetDecision,
});
