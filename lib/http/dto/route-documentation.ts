/**
 * Tells `@nestjs/swagger` about the routes, where the host has it. Its CLI plugin never sees files in node_modules, so all of it is explicit. The metadata
 * sits on the methods that all registrations share: it is written once per process.
 */
import type { Type } from '@nestjs/common';
import { INTERACTION_STATUSES } from '../../contracts/interaction.js';
import { RUN_PHASES, RUN_STATUSES } from '../../contracts/run-status.js';
import { AgentRunsController } from '../agent-runs.controller.js';
import type { SecurityRequirement } from '../agent-runs-http.options.js';
import { RunPeopleController } from '../run-people.controller.js';
import { AgentRunsAgentListDto } from './agent-list.dto.js';
import { apiFields } from './api-field.decorator.js';
import { AgentRunsBudgetStatusDto, AgentRunsDecideBudgetDto } from './budget.dto.js';
import { AgentRunsDecideInteractionDto } from './decide-interaction.dto.js';
import { AgentRunsEventPageDto } from './event-page.dto.js';
import { AgentRunsInteractionDto, AgentRunsInteractionListDto } from './interaction.dto.js';
import { AgentRunsMessageListDto } from './message-list.dto.js';
import { AgentRunsProblemDto } from './problem.dto.js';
import { AgentRunsReasonDto } from './reason.dto.js';
import { AgentRunsResolveOperationDto } from './resolve-operation.dto.js';
import { AgentRunsRestartDto, AgentRunsRetryDto } from './restart-run.dto.js';
import { AgentRunsResumeDto } from './resume-run.dto.js';
import { AgentRunsRunListDto } from './run-list.dto.js';
import { AgentRunsRunDto } from './run.dto.js';
import { AgentRunsSnapshotDto } from './snapshot.dto.js';
import { AgentRunsStartDto } from './start-run.dto.js';
import { AgentRunsSteerDto, AgentRunsSteerReceiptDto } from './steer-run.dto.js';

type Dto = Type<unknown>;
type Swagger = typeof import('@nestjs/swagger');

interface QueryParameter {
  name: string;
  type?: 'string' | 'integer';
  format?: 'date-time';
  enum?: readonly string[];
  /** May be repeated. */
  isArray?: true;
  description?: string;
}

/** What lists of runs and of interactions have in common. */
const LIST_FILTER: readonly QueryParameter[] = [
  { name: 'sessionId' },
  { name: 'agent' },
  { name: 'actor', description: 'Id of the actor who started the run.' },
  { name: 'createdSince', format: 'date-time', description: 'Created at this moment or later.' },
  { name: 'createdBefore', format: 'date-time', description: 'Created before this moment.' },
  { name: 'after', description: 'nextCursor of the page before.' },
  { name: 'limit', type: 'integer', description: '1 to 100, default 50.' },
];

interface RouteDocumentation {
  summary: string;
  params?: string[];
  query?: QueryParameter[];
  body?: Dto;
  isBodyRequired?: boolean;
  answers: Partial<Record<200 | 202, Dto>>;
  problems?: number[];
}

const RUN_ROUTES: Readonly<Record<keyof AgentRunsController, RouteDocumentation>> = {
  definitions: { summary: 'Agents, versions and tools of this process.', answers: { 200: AgentRunsAgentListDto } },
  start: {
    summary: 'Starts a run.',
    query: [
      {
        name: 'wait',
        type: 'integer',
        description: 'Answer when it is settled or suspended, or after so many seconds (at most 60).',
      },
    ],
    body: AgentRunsStartDto,
    isBodyRequired: true,
    answers: { 200: AgentRunsRunDto, 202: AgentRunsRunDto },
    problems: [404, 409, 413, 429],
  },
  list: {
    summary: 'Lists runs. `metadata.<key>=<value>` filters by metadata.',
    query: [...LIST_FILTER, { name: 'status', enum: RUN_STATUSES, isArray: true }, { name: 'phase', enum: RUN_PHASES }],
    answers: { 200: AgentRunsRunListDto },
  },
  get: { summary: 'A run.', params: ['id'], answers: { 200: AgentRunsRunDto } },
  snapshot: {
    summary: 'A run with its operations, read atomically.',
    params: ['id'],
    answers: { 200: AgentRunsSnapshotDto },
  },
  messages: { summary: 'The transcript of a run.', params: ['id'], answers: { 200: AgentRunsMessageListDto } },
  events: {
    summary: 'The events of a run, a page at a time.',
    params: ['id'],
    query: [
      { name: 'after', type: 'integer', description: 'Sequence already seen, default 0.' },
      { name: 'limit', type: 'integer', description: '1 to 500, default 500.' },
      { name: 'projection', enum: ['full', 'lifecycle'] },
    ],
    answers: { 200: AgentRunsEventPageDto },
    problems: [406],
  },
  sessionMessages: {
    summary: 'The transcript of a session.',
    params: ['sessionId'],
    answers: { 200: AgentRunsMessageListDto },
  },
  resume: {
    summary: 'Resumes a suspended run.',
    params: ['id'],
    body: AgentRunsResumeDto,
    answers: { 202: AgentRunsRunDto },
    problems: [409],
  },
  retry: {
    summary: 'Tries a failed run, or one that needs attention, again.',
    params: ['id'],
    body: AgentRunsRetryDto,
    answers: { 202: AgentRunsRunDto },
    problems: [409],
  },
  cancel: {
    summary: 'Cancels an open run for good.',
    params: ['id'],
    body: AgentRunsReasonDto,
    answers: { 202: AgentRunsRunDto },
    problems: [409],
  },
  interrupt: {
    summary: 'Stops a run at its next boundary, all work kept.',
    params: ['id'],
    body: AgentRunsReasonDto,
    answers: { 202: AgentRunsRunDto },
    problems: [409],
  },
  restart: {
    summary: 'Starts a settled run over on the same record.',
    params: ['id'],
    body: AgentRunsRestartDto,
    answers: { 202: AgentRunsRunDto },
    problems: [409, 413, 422],
  },
  resolve: {
    summary: 'Settles an operation whose outcome is unknown.',
    params: ['id'],
    body: AgentRunsResolveOperationDto,
    isBodyRequired: true,
    answers: { 202: AgentRunsRunDto },
    problems: [409, 422],
  },
};

const PEOPLE_ROUTES: Readonly<Record<keyof RunPeopleController, RouteDocumentation>> = {
  interactions: {
    summary:
      'Lists approvals and questions, oldest first, those of one turn in call order. `metadata.<key>=<value>` filters by metadata of the run.',
    query: [
      ...LIST_FILTER,
      { name: 'status', enum: INTERACTION_STATUSES, isArray: true, description: 'Default pending.' },
      { name: 'runId' },
      { name: 'approverRole' },
    ],
    answers: { 200: AgentRunsInteractionListDto },
  },
  interaction: {
    summary: 'An approval or a question of a run.',
    params: ['id', 'interactionId'],
    answers: { 200: AgentRunsInteractionDto },
  },
  decide: {
    summary: 'Decides an approval, or answers a question.',
    params: ['id', 'interactionId'],
    body: AgentRunsDecideInteractionDto,
    isBodyRequired: true,
    answers: { 200: AgentRunsInteractionDto },
    problems: [409, 410, 422],
  },
  steer: {
    summary: 'Sends a message into an open run.',
    params: ['id'],
    body: AgentRunsSteerDto,
    isBodyRequired: true,
    answers: { 202: AgentRunsSteerReceiptDto },
    problems: [409, 413, 422],
  },
  budget: { summary: 'The budget of a run.', params: ['id'], answers: { 200: AgentRunsBudgetStatusDto } },
  decideBudget: {
    summary: 'Grants tokens to a run that waits for them, or denies them.',
    params: ['id'],
    body: AgentRunsDecideBudgetDto,
    isBodyRequired: true,
    answers: { 202: AgentRunsRunDto },
    problems: [409],
  },
};

let isDocumented = false;

/** @returns whether `@nestjs/swagger` is there */
export async function documentRoutes(
  controllers: readonly Type[],
  security: readonly SecurityRequirement[],
): Promise<boolean> {
  const swagger = await import('@nestjs/swagger').catch(() => null);
  if (!swagger) return false;
  for (const controller of controllers) {
    swagger.ApiTags('agent runs')(controller);
    for (const requirement of security) swagger.ApiSecurity(requirement)(controller);
  }
  if (isDocumented) return true;
  isDocumented = true;
  for (const [prototype, fields] of apiFields()) {
    for (const [name, field] of fields) {
      swagger.ApiProperty(field as Parameters<Swagger['ApiProperty']>[0])(prototype, name);
    }
  }
  documentMethods(swagger, AgentRunsController.prototype, RUN_ROUTES);
  documentMethods(swagger, RunPeopleController.prototype, PEOPLE_ROUTES);
  return true;
}

function documentMethods(swagger: Swagger, prototype: object, routes: Record<string, RouteDocumentation>): void {
  for (const [name, route] of Object.entries(routes)) {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
    if (!descriptor) throw new TypeError(`There is no route ${name} to document.`);
    for (const decorate of decoratorsFor(swagger, route)) decorate(prototype, name, descriptor);
  }
}

function decoratorsFor(swagger: Swagger, route: RouteDocumentation): MethodDecorator[] {
  const { summary, params = [], query = [], body, isBodyRequired = false, answers, problems = [] } = route;
  const statuses = new Set([
    400,
    401,
    403,
    503,
    ...(params.length > 0 ? [404] : []),
    ...(body ? [415] : []),
    ...problems,
  ]);
  return [
    swagger.ApiOperation({ summary }),
    ...params.map((name) => swagger.ApiParam({ name, type: String })),
    ...query.map(({ type = 'string', format, enum: choices, ...rest }) => {
      const shape = choices ? { enum: [...choices] } : format ? { schema: { type, format } } : { type };
      return swagger.ApiQuery({ required: false, ...shape, ...rest });
    }),
    ...(body ? [swagger.ApiBody({ type: body, required: isBodyRequired })] : []),
    ...Object.entries(answers).map(([status, type]) => swagger.ApiResponse({ status: Number(status), type })),
    ...[...statuses].map((status) => swagger.ApiResponse({ status, type: AgentRunsProblemDto })),
  ];
}
