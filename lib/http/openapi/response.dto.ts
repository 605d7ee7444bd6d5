import type { Type } from '@nestjs/common';
import type { Actor, RunError } from '../../contracts/run.js';
import { INTERACTION_STATUSES, type Question } from '../../contracts/interaction.js';
import type { Message } from '../../contracts/message.js';
import { RECOVERY_POLICIES } from '../../contracts/policies.js';
import type { SteerReceipt } from '../../contracts/run-requests.js';
import { RUN_PHASES, RUN_STATUSES } from '../../contracts/run-status.js';
import type {
  AgentDescription,
  BudgetStatus,
  EventPage,
  InteractionView,
  OperationView,
  PreviousGeneration,
  Run,
  RunEvent,
  RunLeaseView,
  RunSummaryView,
} from '../../contracts/run-view.js';
import type { FieldDoc } from '../../contracts/schema.js';
import type { UsageTotals } from '../../contracts/operation.js';
import type { SnapshotSummary } from '../agent-runs.controller.js';
import type { HttpProblemBody } from '../results/http-problem.js';
import { type DocOf, dto } from './dto.js';

// ---- kinds of fields ----

const TEXT = { type: 'string' };
const TEXTS = { type: 'array', items: TEXT };
const NUMBER = { type: 'number' };
const TIME = { type: 'string', format: 'date-time' };
const OBJECT = { type: 'object', additionalProperties: true };
/** Any JSON value. */
const VALUE = { type: 'object', nullable: true };
const STATUS = { enum: RUN_STATUSES, enumName: 'AgentRunsRunStatus' };

const about = (description: string, doc: FieldDoc = TEXT): FieldDoc => ({ ...doc, description });
const orNull = (doc: FieldDoc = TEXT): FieldDoc => ({ ...doc, nullable: true });
const one = (type: Type<unknown>): FieldDoc => ({ type: () => type });
const list = (type: Type<unknown>): FieldDoc => ({ type: () => type, isArray: true });

// ---- parts ----

const ACTOR = dto<Actor>('AgentRunsActorDto', { id: TEXT, 'roles?': TEXTS });
const STARTED_BY = about('Who started the run.', one(ACTOR));

const ERROR = dto<Pick<RunError, 'code' | 'message'>>('AgentRunsErrorDto', { code: TEXT, message: TEXT });

const USAGE = dto<UsageTotals>('AgentRunsUsageDto', {
  inputTokens: NUMBER,
  cachedInputTokens: NUMBER,
  outputTokens: NUMBER,
  reasoningTokens: NUMBER,
  totalTokens: NUMBER,
  unknownCalls: about('Replies whose total the provider did not report.', NUMBER),
});

const ATTENTION = dto<NonNullable<Run['attention']>>('AgentRunsAttentionDto', {
  reason: { ...TEXT, example: 'uncertain_outcome' },
  'operationKey?': TEXT,
  'operations?': TEXTS,
  detail: TEXT,
});

const QUESTION = dto<Question>('AgentRunsQuestionDto', {
  id: about('Its answer has this name.'),
  text: TEXT,
  'choices?': TEXTS,
  'allowCustom?': about('With choices: whether another text is accepted. Default false.', { type: 'boolean' }),
  'schema?': about('JSON Schema of the answer.', OBJECT),
});

export const INTERACTION = dto<InteractionView>('AgentRunsInteractionDto', {
  id: TEXT,
  runId: TEXT,
  sessionId: orNull(),
  agent: TEXT,
  version: TEXT,
  actor: orNull(STARTED_BY),
  kind: { enum: ['approval', 'question'] },
  status: { enum: INTERACTION_STATUSES, enumName: 'AgentRunsInteractionStatus' },
  operationKey: { ...TEXT, example: 'r1.m1.t0' },
  ordinal: about('0: whether the call is begun; n: the n-th interaction of its method.', NUMBER),
  callId: orNull(),
  tool: orNull(),
  arguments: orNull(about('As they will be executed; null for a question.', OBJECT)),
  digest: about('A decision holds for this digest alone.'),
  reason: orNull(),
  risk: orNull(),
  approverRole: orNull(about('Only actors with this role may decide.')),
  questions: orNull(list(QUESTION)),
  decision: orNull(about('What was decided and by whom; null while it is open.', OBJECT)),
  createdAt: TIME,
  'expiresAt?': about('Absent: never.', TIME),
  'decidedAt?': TIME,
});

// ---- runs ----

const SUMMARY: DocOf<RunSummaryView> = {
  id: TEXT,
  agent: TEXT,
  version: TEXT,
  status: STATUS,
  phase: { enum: RUN_PHASES, enumName: 'AgentRunsRunPhase' },
  'waitingFor?': TEXTS,
  'attention?': one(ATTENTION),
  'sessionId?': TEXT,
  'actor?': STARTED_BY,
  attempt: about('Activations so far.', NUMBER),
  sequence: about('Sequence of the last event.', NUMBER),
  turn: about('Model requests begun.', NUMBER),
  usage: one(USAGE),
  'metadata?': OBJECT,
  'nextAttemptAt?': TIME,
  createdAt: TIME,
  updatedAt: TIME,
  'startedAt?': TIME,
  'finishedAt?': TIME,
};

const RUN_SUMMARY = dto<RunSummaryView>('AgentRunsRunSummaryDto', SUMMARY);

const LEASE = dto<RunLeaseView>('AgentRunsLeaseDto', { owner: TEXT, 'heartbeatAt?': TIME, 'expiresAt?': TIME });

const GENERATION = dto<PreviousGeneration>('AgentRunsGenerationDto', {
  status: STATUS,
  'output?': VALUE,
  'error?': one(ERROR),
  turns: NUMBER,
  usage: one(USAGE),
  'startedAt?': TIME,
  'finishedAt?': TIME,
});

const BUDGET = dto<NonNullable<Run['budget']>>('AgentRunsBudgetDto', {
  maxTotalTokens: about('Tokens, over the whole run.', NUMBER),
});

export const RUN = dto<Run>('AgentRunsRunDto', {
  ...SUMMARY,
  'requestId?': TEXT,
  'budget?': one(BUDGET),
  'output?': about('The answer: text, or the parsed value.', VALUE),
  'error?': one(ERROR),
  interactions: about('The open ones.', list(INTERACTION)),
  definitionHash: TEXT,
  contractVersion: NUMBER,
  restarts: NUMBER,
  previousGenerations: about('Earlier generations of a run that was restarted.', list(GENERATION)),
  recoveries: about('Claims after lost leases without a result in between.', NUMBER),
  'deadline?': TIME,
  'lease?': one(LEASE),
  'deduplicated?': about('true when an earlier equal request had started this run.', { type: 'boolean' }),
});

const OPERATION = dto<Omit<OperationView, 'output'>>('AgentRunsOperationDto', {
  key: { ...TEXT, example: 'r1.m2.t0' },
  kind: { enum: ['model', 'tool'] },
  name: TEXT,
  status: { enum: ['waiting', 'started', 'completed', 'failed', 'denied', 'uncertain', 'cancelled', 'not_run'] },
  'argumentsDigest?': TEXT,
  'interruptedBy?': { enum: ['crash', 'timeout', 'cancel'] },
  'recovery?': { enum: RECOVERY_POLICIES },
  attempts: NUMBER,
  'startedAt?': TIME,
  'finishedAt?': TIME,
  'usage?': OBJECT,
  'outcome?': TEXT,
});

// ---- answers ----

const NEXT_PAGE = about('Give it as `after`; absent on the last page.');

export const RUN_LIST = dto<{ runs: object[]; nextCursor?: string }>('AgentRunsRunListDto', {
  runs: list(RUN_SUMMARY),
  'nextCursor?': NEXT_PAGE,
});

export const INTERACTION_PAGE = dto<{ interactions: object[]; nextCursor?: string }>('AgentRunsInteractionListDto', {
  interactions: list(INTERACTION),
  'nextCursor?': NEXT_PAGE,
});

export const SNAPSHOT = dto<SnapshotSummary>('AgentRunsSnapshotDto', {
  run: one(RUN),
  operations: list(OPERATION),
  cursor: about('Read events after it.', NUMBER),
});

export const MESSAGE_LIST = dto<{ messages: Message[] }>('AgentRunsMessageListDto', {
  messages: { type: 'array', items: OBJECT },
});

const EVENT = dto<Pick<RunEvent, 'id' | 'type' | 'data'>>('AgentRunsEventDto', {
  id: about('Its sequence within the run: 1, 2, 3 …', NUMBER),
  type: { ...TEXT, example: 'tool.completed' },
  data: OBJECT,
});

export const EVENT_PAGE = dto<EventPage>('AgentRunsEventPageDto', {
  events: list(EVENT),
  nextCursor: about('Give it as `after`.', NUMBER),
});

type AgentVersion = AgentDescription['versions'][number];

const TOOL = dto<AgentVersion['tools'][number]>('AgentRunsToolDto', {
  name: TEXT,
  version: TEXT,
  recovery: { enum: RECOVERY_POLICIES },
  approval: { enum: ['none', 'rule'] },
});

const AGENT_VERSION = dto<AgentVersion>('AgentRunsAgentVersionDto', { version: TEXT, hash: TEXT, tools: list(TOOL) });

const AGENT = dto<AgentDescription>('AgentRunsAgentDto', { name: TEXT, versions: list(AGENT_VERSION) });

export const AGENT_LIST = dto<{ agents: AgentDescription[] }>('AgentRunsAgentListDto', { agents: list(AGENT) });

const GRANT = dto<BudgetStatus['grants'][number]>('AgentRunsBudgetGrantDto', {
  amount: about('Tokens that were added.', NUMBER),
  by: TEXT,
  'note?': TEXT,
  at: TIME,
});

export const BUDGET_STATUS = dto<BudgetStatus>('AgentRunsBudgetStatusDto', {
  'maxTotalTokens?': about('Absent without a limit.', NUMBER),
  consumed: NUMBER,
  'remaining?': about('Absent without a limit; 0 when it was overshot.', NUMBER),
  grants: list(GRANT),
});

export const STEER_RECEIPT = dto<SteerReceipt>('AgentRunsSteerReceiptDto', {
  messageId: TEXT,
  status: { enum: ['queued'] },
});

export const PROBLEM = dto<HttpProblemBody>('AgentRunsProblemDto', {
  statusCode: { ...NUMBER, example: 409 },
  code: { ...about('Stable, for programs.'), example: 'SESSION_BUSY' },
  message: about('For people.'),
  'details?': OBJECT,
});
