import { RequestMethod, type Type } from '@nestjs/common';
import { HTTP_CODE_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import type { Fields, ObjectField } from '../../contracts/schema.js';
import { AgentRunsController } from '../agent-runs.controller.js';
import type { SecurityRequirement } from '../agent-runs-http.options.js';
import {
  BUDGET_BODY,
  DECISION_BODY,
  EVENT_QUERY,
  INTERACTION_LIST_QUERY,
  LIST_QUERY,
  REASON_BODY,
  RESOLUTION_BODY,
  RESTART_BODY,
  RESUME_BODY,
  RETRY_BODY,
  START_BODY,
  STEER_BODY,
  WAIT_QUERY,
} from '../requests/http-schemas.js';
import { bodyDto, docOf, documentDtos } from './dto.js';
import * as responses from './response.dto.js';

type Swagger = typeof import('@nestjs/swagger');
type AnyObject = ObjectField<Fields>;

/** What the controller does not say itself. */
interface RouteDocumentation {
  summary: string;
  answer: Type<unknown>;
  query?: AnyObject;
  body?: { schema: AnyObject; type: Type<unknown> };
  /** Whether it streams events instead, where `Accept` asks for them. */
  streams?: true;
  /** Statuses of problems beside those that follow from the route: what it takes, and what may be done. */
  problems?: number[];
}

const body = (name: string, schema: AnyObject) => ({ schema, type: bodyDto(name, schema) });
const REASON = body('AgentRunsReasonDto', REASON_BODY);

const ROUTES: Readonly<Record<keyof AgentRunsController, RouteDocumentation>> = {
  definitions: { summary: 'Agents, versions and tools of this process.', answer: responses.AGENT_LIST },
  start: {
    summary: 'Starts a run; 200 where it is over, at rest or was there already.',
    query: WAIT_QUERY,
    body: body('AgentRunsStartDto', START_BODY),
    answer: responses.RUN,
    streams: true,
    problems: [404, 406, 409, 413, 429],
  },
  list: {
    summary: 'Lists runs. `metadata.<key>=<value>` filters by metadata.',
    query: LIST_QUERY,
    answer: responses.RUN_LIST,
  },
  get: { summary: 'A run.', answer: responses.RUN },
  snapshot: { summary: 'A run with its operations, read atomically.', answer: responses.SNAPSHOT },
  messages: { summary: 'The transcript of a run.', answer: responses.MESSAGE_LIST },
  events: {
    summary: 'The events of a run, a page at a time or as they are committed.',
    query: EVENT_QUERY,
    answer: responses.EVENT_PAGE,
    streams: true,
    problems: [406],
  },
  sessionMessages: { summary: 'The transcript of a session.', answer: responses.MESSAGE_LIST },
  resume: {
    summary: 'Resumes a suspended run.',
    body: body('AgentRunsResumeDto', RESUME_BODY),
    answer: responses.RUN,
    problems: [409],
  },
  retry: {
    summary: 'Tries a failed run, or one that needs attention, again.',
    body: body('AgentRunsRetryDto', RETRY_BODY),
    answer: responses.RUN,
    problems: [409],
  },
  cancel: { summary: 'Cancels an open run for good.', body: REASON, answer: responses.RUN, problems: [409] },
  interrupt: {
    summary: 'Stops a run at its next boundary, all work kept.',
    body: REASON,
    answer: responses.RUN,
    problems: [409],
  },
  restart: {
    summary: 'Starts a settled run over on the same record.',
    body: body('AgentRunsRestartDto', RESTART_BODY),
    answer: responses.RUN,
    problems: [409, 413, 422],
  },
  resolve: {
    summary: 'Settles an operation whose outcome is unknown.',
    body: body('AgentRunsResolveOperationDto', RESOLUTION_BODY),
    answer: responses.RUN,
    problems: [409, 413, 422],
  },
  interactions: {
    summary:
      'Lists approvals and questions, oldest first, those of one turn in call order. `metadata.<key>=<value>` filters by metadata of the run.',
    query: INTERACTION_LIST_QUERY,
    answer: responses.INTERACTION_PAGE,
  },
  interaction: { summary: 'An approval or a question of a run.', answer: responses.INTERACTION },
  decide: {
    summary: 'Decides an approval, or answers a question.',
    body: body('AgentRunsDecideInteractionDto', DECISION_BODY),
    answer: responses.INTERACTION,
    problems: [409, 410, 413, 422],
  },
  steer: {
    summary: 'Sends a message into an open run.',
    body: body('AgentRunsSteerDto', STEER_BODY),
    answer: responses.STEER_RECEIPT,
    problems: [409, 413, 422],
  },
  budget: { summary: 'The budget of a run.', answer: responses.BUDGET_STATUS },
  decideBudget: {
    summary: 'Grants tokens to a run that waits for them, or denies them.',
    body: body('AgentRunsDecideBudgetDto', BUDGET_BODY),
    answer: responses.RUN,
    problems: [409],
  },
};

let isDocumented = false;

/**
 * Tells `@nestjs/swagger` about the routes, where the host has it. Its CLI plugin never sees files in node_modules, so
 * all of it is explicit. The metadata sits on the methods that all registrations share: it is written once per process.
 * @returns whether `@nestjs/swagger` is there
 */
export async function documentRoutes(controller: Type, security: readonly SecurityRequirement[]): Promise<boolean> {
  const swagger = await import('@nestjs/swagger').catch(() => null);
  if (!swagger) return false;
  swagger.ApiTags('agent runs')(controller);
  for (const requirement of security) swagger.ApiSecurity(requirement)(controller);
  if (isDocumented) return true;
  isDocumented = true;
  const { prototype } = AgentRunsController;
  for (const [name, route] of Object.entries(ROUTES)) {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
    if (!descriptor) throw new TypeError(`There is no route ${name} to document.`);
    for (const decorate of decoratorsFor(swagger, route, descriptor.value as object))
      decorate(prototype, name, descriptor);
  }
  documentDtos(swagger);
  return true;
}

/** Parameters and statuses of answers are those that the controller's own decorators say. */
function decoratorsFor(swagger: Swagger, route: RouteDocumentation, method: object): MethodDecorator[] {
  const { summary, query, body: given, answer, streams, problems = [] } = route;
  const path = Reflect.getMetadata(PATH_METADATA, method) as string;
  const params = Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => name);
  const isPost = Reflect.getMetadata(METHOD_METADATA, method) === RequestMethod.POST;
  const code = (Reflect.getMetadata(HTTP_CODE_METADATA, method) as number | undefined) ?? 200;
  const answers = query === WAIT_QUERY ? [200, code] : [code];
  const failures = [400, 401, 403, 503, ...(params.length > 0 ? [404] : []), ...(isPost ? [415] : []), ...problems];
  return [
    swagger.ApiOperation({ summary }),
    ...params.map((name) => swagger.ApiParam({ name, type: String })),
    ...Object.entries(query?.fields ?? {})
      .filter(([, field]) => !field.isMap)
      .map(([name, field]) => {
        const { description = '', ...schema } = docOf(field);
        return swagger.ApiQuery({ name, required: false, description, schema });
      }),
    ...(given ? [swagger.ApiBody({ type: given.type, required: isRequired(given.schema) })] : []),
    ...answers.map((status) =>
      swagger.ApiResponse(streams && status === 200 ? streamed(swagger, answer) : { status, type: answer }),
    ),
    ...(streams ? [swagger.ApiExtraModels(answer)] : []),
    ...failures.map((status) => swagger.ApiResponse({ status, type: responses.PROBLEM })),
  ];
}

function streamed(swagger: Swagger, answer: Type<unknown>): Parameters<Swagger['ApiResponse']>[0] {
  const content = {
    'application/json': { schema: { $ref: swagger.getSchemaPath(answer) } },
    'text/event-stream': { schema: { type: 'string' } },
  };
  return { status: 200, content };
}

/** Whether an empty body is refused. */
function isRequired(schema: AnyObject): boolean {
  let isRefused = false;
  schema.read({}, () => void (isRefused = true));
  return isRefused;
}
