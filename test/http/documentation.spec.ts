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
      'get /agents/runs',
      'get /agents/runs/{id}',
      'get /agents/runs/{id}/events',
      'get /agents/runs/{id}/messages',
      'get /agents/runs/{id}/snapshot',
      'get /agents/sessions/{sessionId}/messages',
      'post /agents/runs',
      'post /agents/runs/{id}/cancel',
      'post /agents/runs/{id}/operations/resolve',
      'post /agents/runs/{id}/resume',
      'post /agents/runs/{id}/retry',
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

  it('fields of a start are those that are taken', async () => {
    const { fields } = schemaOf(document, 'StartAgentRunDto');
    const everything = Object.fromEntries([...fields, 'surprise'].map((name) => [name, undefined]));
    const { body } = await host.post(
      '/agents/runs',
      JSON.stringify({ ...everything, surprise: 1 }, (_k, v) => v ?? [[]]),
    );
    const unknown = body.details.fields.filter(({ problem }: any) => problem === 'is not known here');
    expect(unknown.map(({ field }: any) => field)).toEqual(['surprise']);
  });
});
