import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

const schemaOf = (document: OpenAPIObject, name: string) => {
  const schema = document.components?.schemas?.[name] as { properties: Record<string, unknown>; required?: string[] };
  return { fields: Object.keys(schema.properties), required: schema.required ?? [] };
};

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

  it('fields of a run are those of the JSON', async () => {
    const { body } = await host.post('/agents/runs?wait=30', {
      agent: 'clerk',
      prompt: 'call:echo {}|say:x',
      sessionId: 's',
      requestId: 'q',
      budget: { maxTotalTokens: 1000 },
      metadata: { a: 1 },
    });
    const run = schemaOf(document, 'AgentRunDto');
    expect(run.fields).toEqual(expect.arrayContaining(Object.keys(body)));
    expect(Object.keys(body)).toEqual(expect.arrayContaining(run.required));
    const { body: list } = await host.get('/agents/runs');
    const summary = schemaOf(document, 'AgentRunSummaryDto');
    expect(summary.fields).toEqual(expect.arrayContaining(Object.keys(list.runs[0])));
    expect(Object.keys(list.runs[0])).toEqual(expect.arrayContaining(summary.required));
    const { body: snapshot } = await host.get(`/agents/runs/${body.id}/snapshot`);
    const operation = schemaOf(document, 'AgentRunOperationDto');
    for (const one of snapshot.operations) {
      expect(operation.fields).toEqual(expect.arrayContaining(Object.keys(one)));
      expect(Object.keys(one)).toEqual(expect.arrayContaining(operation.required));
    }
    const { body: problem } = await host.post('/agents/runs', {}).expect(400);
    expect(schemaOf(document, 'AgentRunProblemDto').fields.sort()).toEqual(Object.keys(problem).sort());
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
    for (const { interactions } of [approval, question]) expectDocumented('AgentRunInteractionDto', interactions[0]);
    for (const one of question.interactions[0].questions) expectDocumented('AgentRunQuestionDto', one);
    expectDocumented('AgentRunInteractionListDto', (await host.get('/agents/interactions?limit=1')).body);
    const { body: receipt } = await host.post(`/agents/runs/${approval.id}/steer`, { message: 'x' });
    expectDocumented('SteerReceiptDto', receipt);
    const { body: decided } = await host.post(
      `/agents/runs/${approval.id}/interactions/${approval.interactions[0].id}`,
      { decision: 'deny' },
    );
    expectDocumented('AgentRunInteractionDto', decided);
    const limited = await start('call:echo {}|say:x', { budget: { maxTotalTokens: 3 } });
    await host.post(`/agents/runs/${limited.id}/budget`, { decision: 'grant', note: 'n' }).expect(202);
    const { body: budget } = await host.get(`/agents/runs/${limited.id}/budget`);
    expectDocumented('AgentRunBudgetStatusDto', budget);
    expectDocumented('AgentRunBudgetGrantDto', budget.grants[0]);
    const settled = await start('say:x');
    const { body: restarted } = await host.post(`/agents/runs/${settled.id}/restart`, {}).expect(202);
    expectDocumented('AgentRunPartDto', restarted.previous[0]);
  });

  it.each([
    ['StartAgentRunDto', ''],
    ['ResumeAgentRunDto', '/any/resume'],
    ['AgentRunReasonDto', '/any/interrupt'],
    ['RestartAgentRunDto', '/any/restart'],
    ['ResolveOperationDto', '/any/operations/resolve'],
    ['DecideInteractionDto', '/any/interactions/any'],
    ['SteerAgentRunDto', '/any/steer'],
    ['DecideBudgetDto', '/any/budget'],
  ])('fields of %s are those that are taken', async (name, path) => {
    const { fields } = schemaOf(document, name);
    const everything = Object.fromEntries(fields.map((field) => [field, [[]]]));
    const { body } = await host.post(`/agents/runs${path}`, { ...everything, surprise: 1 }).expect(400);
    const unknown = body.details.fields.filter(({ problem }: any) => problem === 'is not known here');
    expect(unknown.map(({ field }: any) => field)).toEqual(['surprise']);
  });
});
