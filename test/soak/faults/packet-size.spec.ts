/** Results up to and beyond what the server takes in one packet, without strict mode: B123, JRN-9. */
import { createHash } from 'node:crypto';
import type { ToolMessage } from '../../../lib/contracts/message.js';
import type { Run } from '../../../lib/contracts/run-view.js';
import { describeLanes } from './describe-lanes.js';
import type { HostError } from './host-process.js';
import { runIds, started, type Turn } from './scripts.js';

const MIB = 1_048_576;

/** What a tool returns for `order`. */
const RESULTS: Record<string, string> = {
  '65,535 bytes': 'x'.repeat(65_535),
  '65,536 bytes': 'x'.repeat(65_536),
  '65,536 bytes of two each': 'ü'.repeat(32_768),
  '262,144 bytes of four each': '😀'.repeat(65_536),
  '1 MiB': 'y'.repeat(MIB),
  '1 MiB of quotes': '"'.repeat(MIB / 2),
  '5 MiB': 'z'.repeat(5 * MIB),
};
const SMALL = ['65,535 bytes', '65,536 bytes', '65,536 bytes of two each', '262,144 bytes of four each'];
const LARGE = Object.keys(RESULTS).filter((size) => !SMALL.includes(size));
/** What the model says, by run. */
const REPLIES: Record<string, string> = {
  'reply-of-262144-bytes': '😀'.repeat(65_536),
  'reply-of-1-MiB': 'r'.repeat(MIB),
};
const TOOLS = ['look_up', 'refund', 'pay', 'note'] as const;

/** Large texts by their hash. */
const seen = (value: unknown): unknown =>
  typeof value === 'string' && value.length > 1_000 ? createHash('sha256').update(value).digest('hex') : value;

describeLanes('results of all sizes, with max_allowed_packet at 1 MiB and no strict mode', {
  settings: (type) =>
    type === 'mariadb' ? { arguments: [`--max-allowed-packet=${MIB}`, '--sql-mode='] } : { arguments: [] },

  async play(lane) {
    const host = await lane.boot('a', {
      store: { statementTimeout: '5s' },
      runs: { lease: '30s', maxConcurrentRuns: 40 },
    });
    lane.farSide.answerTo = ({ tool, runId, key, order = '' }) =>
      (tool === 'model' ? REPLIES[runId] : RESULTS[order]) ?? { receipt: `${tool} for ${key}` };

    const cases = Object.keys(RESULTS).flatMap((size) =>
      TOOLS.map((tool) => ({ size, tool, runId: `${tool}-${size.replaceAll(/\W/g, '-')}` })),
    );
    const neighbours = runIds(10);
    const turns = (size: string, tool: string): Turn[] => [[{ name: tool, order: size }], 'done'];
    // Three results of one turn that fit one by one, and not together.
    const together = 'together';
    const three = Array.from({ length: 3 }, () => ({ name: 'look_up', order: '262,144 bytes of four each' }));
    const gate = lane.farSide.hold({ runId: together, tool: 'look_up' });
    await lane.start(host, started(together, [[...three, ...three], 'done']));
    const replies = Object.keys(REPLIES);
    await Promise.all([
      ...replies.map((runId) => lane.start(host, started(runId, ['done']))),
      ...cases.map(({ size, tool, runId }) => lane.start(host, started(runId, turns(size, tool)))),
      ...neighbours.map((runId) => lane.start(host, started(runId, [['look_up', 'refund'], ['note'], 'done']))),
    ]);
    gate.open();
    const runs = new Map(
      (await lane.rest(host, [together, ...replies, ...neighbours, ...cases.map(({ runId }) => runId)])).map((run) => [
        run.id,
        run,
      ]),
    );
    // Again, now that the database is the only one who remembers: what was stored is what the next request would send.
    const results = new Map<string, unknown[]>();
    for (const runId of runs.keys()) {
      const messages = await host.call('runs', 'messages', runId);
      const tools = messages.filter((message): message is ToolMessage => message.role === 'tool');
      results.set(
        runId,
        tools.flatMap(({ content }) => content.map(({ output }) => seen(output))),
      );
    }
    const refusal: HostError | null = await host
      .call('runs', 'start', {
        ...started('prompt', ['done']),
        prompt: `@@[{"text":"done"}]\nprompt ${'p'.repeat(3 * MIB)}`,
      })
      .then(
        () => null,
        (error: HostError) => error,
      );
    return {
      cases,
      neighbours,
      runs,
      results,
      refusal,
      farSide: lane.farSide,
      unsound: await lane.unsound([...runs.keys()]),
      status: await host.call('worker', 'status'),
      metrics: await host.call('metrics', 'read'),
      pool: await lane.poolAtRest(host),
      closedMs: await host.close(10_000),
      log: host.log,
    };
  },

  tests(facts, type) {
    const fits = type === 'postgres' ? Object.keys(RESULTS) : SMALL;
    const runOf = (tool: string, size: string): Run =>
      facts().runs.get(facts().cases.find((one) => one.tool === tool && one.size === size)?.runId ?? '') as Run;

    it.each(fits)('JRN-9: a result of %s is stored and given to the model exactly', (size) => {
      for (const tool of TOOLS) {
        const run = runOf(tool, size);
        expect([run.id, run.status]).toEqual([run.id, 'completed']);
        expect(facts().results.get(run.id)).toEqual([seen(RESULTS[size] as string)]);
      }
    });

    if (type === 'mariadb') {
      it.each(LARGE)('B123: a result of %s is an error of a read, and of a tool whose rows go with it', (size) => {
        for (const tool of ['look_up', 'note']) {
          const run = runOf(tool, size);
          expect([run.id, run.status]).toEqual([run.id, 'completed']);
          expect(facts().results.get(run.id)).toEqual([expect.stringContaining('larger than')]);
        }
      });

      it.each(LARGE)('B123: a result of %s needs a person where the effect has happened', (size) => {
        for (const tool of ['refund', 'pay']) {
          expect(runOf(tool, size)).toMatchObject({
            status: 'needs_attention',
            attention: { reason: 'unserialisable_result', operationKey: 'r1.m1.t0' },
          });
        }
      });

      it('OPS-3: a reply that the database could not store fails its run, clearly', () => {
        const run = facts().runs.get('reply-of-1-MiB');
        expect(run).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('maxPayloadBytes') } });
      });

      it('SUB-3: a prompt that the database could not store is refused before a row exists', () => {
        expect(facts().refusal).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
      });
    }

    it('JRN-9: a reply is stored exactly, and so is the output made of it', () => {
      const fitting = Object.keys(REPLIES).filter((runId) => type === 'postgres' || runId !== 'reply-of-1-MiB');
      for (const runId of fitting)
        expect([runId, seen(facts().runs.get(runId)?.output)]).toEqual([runId, seen(REPLIES[runId])]);
    });

    it('B123: no tool is asked again because of the size of its result', () => {
      for (const { tool, runId } of facts().cases)
        expect([runId, facts().farSide.of({ tool, runId })]).toEqual([runId, [expect.anything()]]);
    });

    it('B123: neighbours, and results that are too large only together, are stored', () => {
      for (const runId of ['together', ...facts().neighbours])
        expect([runId, facts().runs.get(runId)?.status]).toEqual([runId, 'completed']);
      expect(facts().results.get('together')).toEqual(
        Array.from({ length: 6 }, () => seen(RESULTS['262,144 bytes of four each'] as string)),
      );
      expect(facts().unsound).toEqual([]);
    });

    it('STO-4: the worker is not harmed, and the process ends by itself', () => {
      expect(facts().status).toMatchObject({ state: 'ready', activeRuns: 0 });
      expect(facts().metrics.offenders).toBe(0);
      expect(facts().pool).toMatchObject({ idle: facts().pool.open, waiting: 0 });
      expect(facts().closedMs).toBeLessThan(5_000);
      // A run that fails or needs a person is a line of its own.
      const others = facts().log.replace(/^.*ERROR.*\[AgentRuns\].* a run (?:failed|needs attention) .*$/gm, '');
      expect(others).not.toMatch(/Warning:|Unhandled|ERROR/);
    });
  },
});
