import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { SampleDirectory, type SampleProcess } from './sample-process.js';

const QUICK = { AGENT_RUNS_LEASE: '1s', AGENT_RUNS_RECONCILE_EVERY: '250ms', AGENT_RUNS_POLL_EVERY: '100ms' };

// Processes are started and killed; each start takes a second or two.
jest.setTimeout(60_000);

describe('The sample, as the README shows it', () => {
  let directory: SampleDirectory;
  beforeEach(() => {
    directory = new SampleDirectory();
  });
  afterEach(() => directory.remove());

  const operations = async (sample: SampleProcess, runId: string) =>
    (await sample.http('GET', `/agents/runs/${runId}/snapshot`)).body.operations as { name: string; status: string }[];

  it('a run that is killed in the middle goes on in the next process; the ledger shows one refund', async () => {
    const environment = { ...QUICK, DEMO_MODEL_DELAY_MS: '300' };
    const first = await directory.start(environment);
    expect(existsSync(join(directory.path, 'data/agent-runs.sqlite'))).toBe(true);
    const started = await first.http('POST', '/agents/runs', {
      agent: 'support',
      prompt: 'Please refund 25 for order o-17',
    });
    expect(started.status).toBe(202);
    expect(started.body).toMatchObject({ agent: 'support', version: '2' });
    while (!(await operations(first, started.body.id)).some(({ name }) => name === 'refund_payment')) await delay(10);
    await first.kill('SIGKILL');

    const second = await directory.start(environment);
    const run = await second.until(started.body.id, 'completed');
    expect(run.output).toContain('25.00 EUR');
    expect(run.attempt).toBe(2);
    const ledger = await second.http('GET', '/ledger');
    expect(ledger.body).toEqual([
      {
        kind: 'refunds',
        operationId: expect.stringMatching(new RegExp(`^${run.id}/`)),
        details: { orderId: 'o-17', amountCents: 2500 },
      },
    ]);
    const notes = await second.http('GET', '/orders/o-17/notes');
    expect(notes.body).toEqual([
      {
        id: expect.any(String),
        orderId: 'o-17',
        text: expect.stringContaining('25.00'),
        operationId: expect.any(String),
      },
    ]);
  });

  it('the events of a run read as the README lists them', async () => {
    const sample = await directory.start({ ...QUICK, DEMO_MODEL_DELAY_MS: '1' });
    const start = { agent: 'support', prompt: 'Please refund 25 for order o-17', runId: 'demo-1' };
    await sample.http('POST', '/agents/runs?wait=30', start);
    const answer = await sample.http('GET', '/agents/runs/demo-1/events?projection=lifecycle');
    type Event = { type: string; data: Record<string, unknown> };
    const listed = readFileSync('README.md', 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{"id":') && line.includes('"data":'))
      .map((line) => JSON.parse(line.replace(/\}\],"nextCursor".*|\},?$/, '}')) as Event);
    expect(listed.length).toBeGreaterThan(5);
    // Nothing is recovered here: an event of a recovery has no like in it.
    for (const { type, data } of listed.filter(({ type }) => !/lease_expired|resumed/.test(type))) {
      const like = (answer.body.events as Event[]).find(
        (event) => event.type === type && event.data['key'] === data['key'],
      );
      expect([type, Object.keys(like?.data ?? {})]).toEqual([type, Object.keys(data)]);
    }
  });

  it('PPL-1: a refund of more than 100 EUR waits for a person, who may answer after a crash; the ledger shows it once', async () => {
    const environment = { ...QUICK, DEMO_MODEL_DELAY_MS: '1', AGENT_RUNS_APPROVAL_EXPIRES: '2h' };
    const first = await directory.start(environment);
    const ask = async (prompt: string) =>
      (await first.http('POST', '/agents/runs?wait=30', { agent: 'support', prompt })).body;
    expect(await ask('Refund 100 for order o-17')).toMatchObject({ status: 'completed', interactions: [] });
    const waiting = await ask('Refund 100.01 for order o-18');
    expect(waiting).toMatchObject({
      status: 'waiting',
      waitingFor: ['approval'],
      interactions: [
        {
          tool: 'refund_payment',
          arguments: { orderId: 'o-18', amountCents: 10_001 },
          reason: expect.stringContaining('100 EUR'),
        },
      ],
    });
    const [{ id, createdAt, expiresAt }] = waiting.interactions;
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(2 * 3_600_000);
    await first.kill('SIGKILL');

    const second = await directory.start(environment);
    const { body: inbox } = await second.http('GET', '/agents/interactions?status=pending');
    expect(inbox.interactions.map((one: { id: string }) => one.id)).toEqual([id]);
    const answer = await second.http('POST', `/agents/runs/${waiting.id}/interactions/${id}`, { decision: 'approve' });
    expect(answer).toMatchObject({ status: 200, body: { decision: { by: 'alice' } } });
    await second.until(waiting.id, 'completed');
    const { body: ledger } = await second.http('GET', '/ledger');
    expect(ledger.map(({ details }: any) => details.amountCents)).toEqual([10_000, 10_001]);
  });

  it('a ticket and its run are one commit, and the ticket shows the answer', async () => {
    const sample = await directory.start({ ...QUICK, DEMO_MODEL_DELAY_MS: '1' });
    const ticket = await sample.http('POST', '/support/tickets', { text: 'Where is order o-3?' });
    expect(ticket).toMatchObject({ status: 201, body: { id: expect.any(String), runId: expect.any(String) } });
    await sample.until(ticket.body.runId, 'completed');
    const { body } = await sample.http('GET', `/support/tickets/${ticket.body.id}`);
    expect(body).toEqual({
      id: ticket.body.id,
      text: 'Where is order o-3?',
      runId: ticket.body.runId,
      status: 'completed',
      answer: expect.stringContaining('o-3'),
    });
    for (const bad of [{}, { text: '' }, { text: ' \n' }, { text: 1 }, { text: 'x', more: 1 }]) {
      expect([bad, (await sample.http('POST', '/support/tickets', bad)).status]).toEqual([bad, 400]);
    }
    expect((await sample.http('GET', '/agents/runs')).body.runs).toHaveLength(1);
    expect((await sample.http('GET', '/support/tickets/none')).status).toBe(404);
  });

  it('CFG-4: without a worker it starts and reads runs, and never runs them; nobody gets in without a name, health apart', async () => {
    // Its model is so slow that the run could not complete if this process had claimed it.
    const api = await directory.start({ AGENT_RUNS_WORKER: 'off', DEMO_MODEL_DELAY_MS: '60000' });
    const { body } = await api.http('POST', '/agents/runs', { agent: 'support', version: '1', prompt: 'Hello' });
    expect((await api.http('GET', `/agents/runs/${body.id}`)).body).toMatchObject({ status: 'pending', attempt: 0 });
    const nobody = { 'x-user': '' };
    for (const path of ['/agents/runs', '/agents/definitions', '/ledger', '/orders/o-1/notes', '/support/tickets/x']) {
      expect([path, (await api.http('GET', path, undefined, nobody)).status]).toEqual([path, 401]);
    }
    expect(await api.http('GET', '/health', undefined, nobody)).toMatchObject({ status: 200, body: { status: 'ok' } });
    const worker = await directory.start({ ...QUICK, DEMO_MODEL_DELAY_MS: '1' });
    await worker.until(body.id, 'completed');
    expect((await api.http('GET', `/agents/runs/${body.id}`)).body.output).toContain('Which order');
  });

  it('JRN-7: registers the agents it is told to', async () => {
    const names = async (sample: SampleProcess) =>
      (await sample.http('GET', '/agents/definitions')).body.agents.flatMap((agent: any) =>
        agent.versions.map((version: any) => `${agent.name}@${version.version}`),
      );
    // All at once on a new database: they agree on who makes the tables.
    const [all, one, suffixed] = (await Promise.all(
      (
        [{}, { AGENT_RUNS_AGENTS: 'support@1' }, { AGENT_RUNS_INSTRUCTIONS_SUFFIX: ' Be brief.' }] as Record<
          string,
          string
        >[]
      ).map((environment) => directory.start({ AGENT_RUNS_WORKER: 'off', ...environment })),
    )) as [SampleProcess, SampleProcess, SampleProcess];
    expect((await names(all)).sort()).toEqual(['support-stream@1', 'support@1', 'support@2']);
    const { body } = await all.http('GET', '/agents/definitions');
    const tools = body.agents.find((agent: any) => agent.name === 'support').versions.at(-1).tools;
    expect(Object.fromEntries(tools.map((tool: any) => [tool.name, tool.recovery]))).toEqual({
      lookup_order: 'safe',
      refund_payment: 'idempotent',
      send_email: 'manual',
      charge_card: 'probe',
      ship_order: 'inform',
      add_note: 'transactional',
      close_order: 'idempotent',
    });
    expect(await names(one)).toEqual(['support@1']);
    const hashes = async (sample: SampleProcess) =>
      (await sample.http('GET', '/agents/definitions')).body.agents.flatMap((agent: any) =>
        agent.versions.map((version: any) => version.hash),
      );
    const before = await hashes(all);
    expect((await hashes(suffixed)).filter((hash: string) => before.includes(hash))).toEqual([]);
  });

  it('CFG-6: SIGTERM ends it in good order', async () => {
    const sample = await directory.start(QUICK);
    // Nest ends the process by the signal itself once everything is closed: there is no exit code.
    expect(await sample.kill('SIGTERM')).toBeNull();
    expect(sample.log).not.toMatch(/error/i);
  });

  it('a bad setting is a start-up error that names the variable, with exit code 1', async () => {
    const { code, log } = await directory.run({ PORT: 'http', DATABASE_URL: 'oracle://root:hunter2@db/x' });
    expect(code).toBe(1);
    expect(log).toContain('PORT is "http"');
    expect(log).toContain('DATABASE_URL');
    expect(log).not.toMatch(/hunter2|node_modules/);
  });

  it('a ledger that answers with an error, or not at all, is an error that the model is told', async () => {
    const seen: (string | undefined)[] = [];
    const ledger = createServer((request, response) => {
      seen.push(request.headers['idempotency-key'] as string | undefined);
      const isOrder = request.url === '/orders/o-1';
      response.writeHead(isOrder ? 200 : 503, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isOrder ? { id: 'o-1', customer: 'Ada', email: 'a@b.c', amountCents: 900 } : {}));
    });
    await new Promise<void>((resolve) => ledger.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(ledger.address() as AddressInfo).port}`;
    const sample = await directory.start({ ...QUICK, DEMO_MODEL_DELAY_MS: '1', LEDGER_URL: url });
    const ask = async (prompt: string) =>
      (await sample.http('POST', '/agents/runs?wait=30', { agent: 'support', prompt })).body;
    const refused = await ask('Refund order o-1');
    expect(refused.output).toContain('status 503');
    expect(seen[1]).toMatch(new RegExp(`^${refused.id}/`));
    await new Promise((resolve) => ledger.close(resolve));
    expect((await ask('Refund order o-1')).output).toContain('could not be reached');
  });
});
