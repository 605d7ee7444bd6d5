import { Controller, Get, Post, type Type } from '@nestjs/common';
import { ApiProperty, ApiResponse, DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

const schemaOf = (document: OpenAPIObject, name: string) => {
  const schema = document.components?.schemas?.[name] as { properties: Record<string, unknown>; required?: string[] };
  return { fields: Object.keys(schema.properties), required: schema.required ?? [] };
};

const operationsOf = (document: OpenAPIObject) =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.values(methods as Record<string, any>).map((operation) => ({ path, operation })),
  );

/** A DTO of the host. */
function dtoOf(name: string): Type {
  class Dto {}
  ApiProperty({ type: String })(Dto.prototype, 'ofTheHost');
  Object.defineProperty(Dto, 'name', { value: name });
  return Dto;
}

describe.each(ADAPTERS)('With @nestjs/swagger on %s', (adapter) => {
  let host: HttpHost;
  let document: OpenAPIObject;
  beforeAll(async () => {
    host = await startHttpHost({ adapter });
    document = SwaggerModule.createDocument(host.app, new DocumentBuilder().build());
  });
  afterAll(() => host.close());

  it('every route is described: summary, body, parameters, answers and errors', () => {
    const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods as Record<string, any>).map(([method, operation]) => ({ path, method, operation })),
    );
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'get /agents/definitions',
      'get /agents/interactions',
      'get /agents/runs',
      'get /agents/runs/{id}',
      'get /agents/runs/{id}/budget',
      'get /agents/runs/{id}/events',
      'get /agents/runs/{id}/interactions/{interactionId}',
      'get /agents/runs/{id}/messages',
      'get /agents/runs/{id}/snapshot',
      'get /agents/sessions/{sessionId}/messages',
      'post /agents/runs',
      'post /agents/runs/{id}/budget',
      'post /agents/runs/{id}/cancel',
      'post /agents/runs/{id}/interactions/{interactionId}',
      'post /agents/runs/{id}/interrupt',
      'post /agents/runs/{id}/operations/resolve',
      'post /agents/runs/{id}/restart',
      'post /agents/runs/{id}/resume',
      'post /agents/runs/{id}/retry',
      'post /agents/runs/{id}/steer',
    ]);
    for (const { path, method, operation } of routes) {
      expect([path, operation.summary]).toEqual([path, expect.any(String)]);
      expect(operation.tags).toEqual(['agent runs']);
      expect([path, 'requestBody' in operation]).toEqual([path, method === 'post']);
      expect([path, Object.keys(operation.responses)]).toEqual([path, expect.arrayContaining(['400', '401', '503'])]);
    }
  });

  it('STR-S1: routes that stream say so beside their JSON', () => {
    const contents = operationsOf(document).flatMap(({ operation }) =>
      Object.keys(operation.responses['200']?.content ?? {}),
    );
    expect(contents.filter((mediaType) => mediaType === 'text/event-stream')).toHaveLength(2);
    const responses = document.paths['/agents/runs/{id}/events']?.get?.responses as Record<string, any>;
    expect(responses['200'].content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/AgentRunsEventPageDto',
    });
    expect(document.components?.schemas).toHaveProperty('AgentRunsEventPageDto');
  });

  it('lists take several statuses and moments', () => {
    for (const path of ['/agents/runs', '/agents/interactions']) {
      const parameters = (document.paths[path]?.get?.parameters ?? []) as { name: string; schema: object }[];
      const schemas = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]));
      expect(schemas).toMatchObject({
        actor: { type: 'string' },
        status: { type: 'array', items: { enum: expect.arrayContaining(['pending']) } },
        createdSince: { type: 'string', format: 'date-time' },
        createdBefore: { type: 'string', format: 'date-time' },
      });
    }
  });

  it('fields of a run are those of the JSON', async () => {
    const { body } = await host.post('/agents/runs?wait=30', {
      agent: 'clerk',
      prompt: 'call:echo {}|say:x',
      sessionId: 's',
      requestId: 'q',
      budget: { maxTotalTokens: 1000 },
      metadata: { a: 1 },
    });
    const run = schemaOf(document, 'AgentRunsRunDto');
    expect(run.fields).toEqual(expect.arrayContaining(Object.keys(body)));
    expect(Object.keys(body)).toEqual(expect.arrayContaining(run.required));
    const { body: list } = await host.get('/agents/runs');
    const summary = schemaOf(document, 'AgentRunsRunSummaryDto');
    expect(summary.fields).toEqual(expect.arrayContaining(Object.keys(list.runs[0])));
    expect(Object.keys(list.runs[0])).toEqual(expect.arrayContaining(summary.required));
    const { body: snapshot } = await host.get(`/agents/runs/${body.id}/snapshot`);
    const operation = schemaOf(document, 'AgentRunsOperationDto');
    for (const one of snapshot.operations) {
      expect(operation.fields).toEqual(expect.arrayContaining(Object.keys(one)));
      expect(Object.keys(one)).toEqual(expect.arrayContaining(operation.required));
    }
    const { body: problem } = await host.post('/agents/runs', {}).expect(400);
    expect(schemaOf(document, 'AgentRunsProblemDto').fields.sort()).toEqual(Object.keys(problem).sort());
  });

  it('fields of asks, their questions, budgets and receipts are those of the JSON', async () => {
    const start = async (prompt: string, more = {}) =>
      (await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt, ...more }).expect(200)).body;
    const expectDocumented = (name: string, json: object) => {
      const { fields, required } = schemaOf(document, name);
      expect([name, fields]).toEqual([name, expect.arrayContaining(Object.keys(json))]);
      expect([name, Object.keys(json)]).toEqual([name, expect.arrayContaining(required)]);
    };
    const approval = await start('call:pay {"cents":5}');
    const question = await start('call:inquire {}');
    for (const { interactions } of [approval, question]) expectDocumented('AgentRunsInteractionDto', interactions[0]);
    for (const one of question.interactions[0].questions) expectDocumented('AgentRunsQuestionDto', one);
    expectDocumented('AgentRunsInteractionListDto', (await host.get('/agents/interactions?limit=1')).body);
    const { body: receipt } = await host.post(`/agents/runs/${approval.id}/steer`, { message: 'x' });
    expectDocumented('AgentRunsSteerReceiptDto', receipt);
    const { body: decided } = await host.post(
      `/agents/runs/${approval.id}/interactions/${approval.interactions[0].id}`,
      { decision: 'deny' },
    );
    expectDocumented('AgentRunsInteractionDto', decided);
    const limited = await start('call:echo {}|say:x', { budget: { maxTotalTokens: 3 } });
    await host.post(`/agents/runs/${limited.id}/budget`, { decision: 'grant', note: 'n' }).expect(202);
    const { body: budget } = await host.get(`/agents/runs/${limited.id}/budget`);
    expectDocumented('AgentRunsBudgetStatusDto', budget);
    expectDocumented('AgentRunsBudgetGrantDto', budget.grants[0]);
    const settled = await start('say:x');
    const { body: restarted } = await host.post(`/agents/runs/${settled.id}/restart`, {}).expect(202);
    expectDocumented('AgentRunsGenerationDto', restarted.previousGenerations[0]);
  });

  it.each([
    ['AgentRunsStartDto', ''],
    ['AgentRunsResumeDto', '/any/resume'],
    ['AgentRunsReasonDto', '/any/interrupt'],
    ['AgentRunsRestartDto', '/any/restart'],
    ['AgentRunsResolveOperationDto', '/any/operations/resolve'],
    ['AgentRunsDecideInteractionDto', '/any/interactions/any'],
    ['AgentRunsSteerDto', '/any/steer'],
    ['AgentRunsDecideBudgetDto', '/any/budget'],
  ])('fields of %s are those that are taken', async (name, path) => {
    const { fields } = schemaOf(document, name);
    const everything = Object.fromEntries(fields.map((field) => [field, [[]]]));
    const { body } = await host.post(`/agents/runs${path}`, { ...everything, surprise: 1 }).expect(400);
    const unknown = body.details.fields.filter(({ problem }: any) => problem === 'is not known here');
    expect(unknown.map(({ field }: any) => field)).toEqual(['surprise']);
  });
});

describe.each(ADAPTERS)('In the document of a host on %s', (adapter) => {
  const documentOf = async (options: Parameters<typeof startHttpHost>[0]) => {
    const host = await startHttpHost({ adapter, worker: false, ...options });
    try {
      return SwaggerModule.createDocument(host.app, new DocumentBuilder().build());
    } finally {
      await host.close();
    }
  };
  const names = (document: OpenAPIObject) => Object.keys(document.components?.schemas ?? {});
  const idsOf = (document: OpenAPIObject) => operationsOf(document).map(({ operation }) => operation.operationId);

  it('schemas and operations carry the prefix, and DTOs and controllers of the host replace none of them', async () => {
    const alone = await documentOf({});
    const ours = names(alone);
    expect(ours.filter((name) => !/^AgentRuns[A-Z]/.test(name))).toEqual([]);
    expect(idsOf(alone).filter((id) => !id.startsWith('AgentRuns_'))).toEqual([]);

    const theirs = ['AgentDto', 'AgentRunDto', ...ours.map((name) => name.replace('AgentRuns', ''))];
    @Controller('host')
    class RunsController {
      @Get()
      get() {}

      @Post()
      start() {}
    }
    theirs.forEach((name, index) => {
      const descriptor = Object.getOwnPropertyDescriptor(RunsController.prototype, 'get') as PropertyDescriptor;
      ApiResponse({ status: 200 + index, type: dtoOf(name) })(RunsController.prototype, 'get', descriptor);
    });
    const both = await documentOf({ controllers: [RunsController] });
    expect(names(both).sort()).toEqual([...new Set([...ours, ...theirs])].sort());
    for (const name of ours) expect(both.components?.schemas?.[name]).toEqual(alone.components?.schemas?.[name]);
    for (const name of theirs) expect(schemaOf(both, name).fields).toEqual(['ofTheHost']);
    expect(new Set(idsOf(both)).size).toBe(idsOf(both).length);
  });

  it('registrations state their own security, none claims what was not stated, and their operations differ', async () => {
    const document = await documentOf({
      routes: [
        { path: 'public' },
        { path: 'staff/agents', security: ['bearer', { oauth2: ['runs'], key: [] }] },
        { path: 'robots', security: [{ key: [] }] },
      ],
    });
    const stated = (path: string) =>
      operationsOf(document)
        .filter((one) => one.path.startsWith(path))
        .map(({ operation }) => operation.security);
    expect(new Set(stated('/public'))).toEqual(new Set([undefined]));
    for (const security of stated('/staff')) {
      expect(security).toHaveLength(2);
      expect(security).toEqual(expect.arrayContaining([{ bearer: [] }, { oauth2: ['runs'], key: [] }]));
    }
    for (const security of stated('/robots')) expect(security).toEqual([{ key: [] }]);
    expect(stated('/staff')).toHaveLength(20);
    expect(new Set(idsOf(document)).size).toBe(60);
  });
});
