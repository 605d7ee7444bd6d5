/** MariaDB with the character sets of old installations, and a data source that says nothing about them: B125, STO-5. */
import type { Run } from '../../../lib/contracts/run-view.js';
import { describeLanes } from './describe-lanes.js';
import type { FaultLane } from './fault-lane.js';
import type { HostError } from './host-process.js';
import { runIds, started } from './scripts.js';

const SETS = [
  { set: 'latin1', collation: 'latin1_swedish_ci' },
  { set: 'utf8mb3', collation: 'utf8mb3_general_ci' },
] as const;
/** An emoji of several, a flag, letters that latin1 has and has not, and two ways to write one letter. */
const TEXT = '\u{1F469}\u200d\u{1F469}\u200d\u{1F467} \u{1F1EA}\u{1F1FA} \u00fc \u6f22 \u010d u\u0308 \u{20BB7}';
const VALUE = { [TEXT]: TEXT, list: [TEXT, `${TEXT}?`] };

/** Whether a process boots with this data source, or what it says. */
async function boots(lane: FaultLane, charset: string): Promise<string> {
  const name = `says-${charset}`;
  return lane.boot(name, { direct: true, dataSource: { charset } }).then(
    (host) => host.close(10_000).then(() => 'booted'),
    (error: HostError) => [error.message, ...error.problems].join(' '),
  );
}

for (const { set, collation } of SETS) {
  describeLanes(`a server whose default is ${set}`, {
    types: ['mariadb'],
    settings: () => ({ arguments: [`--character-set-server=${set}`, `--collation-server=${collation}`] }),

    async play(lane) {
      // Undefined is not said at all.
      const host = await lane.boot('a', { direct: true, hasNotes: false, dataSource: { charset: undefined } });
      lane.farSide.answerTo = () => VALUE;
      const options = started('run-1', [[{ name: 'look_up', order: TEXT }, 'sign'], ['pay'], TEXT]);
      await host.call('runs', 'start', {
        ...options,
        prompt: `${String(options.prompt)}\n${TEXT}`,
        metadata: { text: TEXT, other: 'x' },
        actor: { id: TEXT, roles: [TEXT] },
      });
      const [asked] = (await lane.rest(host, ['run-1'])) as [Run];
      await host.call('runs', 'steer', 'run-1', TEXT, { sender: TEXT });
      await host.call('runs', 'respond', 'run-1', asked.interactions[0]?.id ?? '', {
        decision: 'deny',
        by: 'ann',
        note: TEXT,
      });
      const [run] = (await lane.rest(host, ['run-1'])) as [Run];
      // Somebody who stops it says why.
      const failing = started('run-2', [['sign'], 'done']);
      await host.call('runs', 'start', failing);
      await lane.rest(host, ['run-2']);
      await host.call('runs', 'cancel', 'run-2', { by: 'ann', reason: TEXT });
      // Together, so that they share statements.
      const crowd = runIds(32, 10);
      await Promise.all(
        crowd.map((runId) =>
          host.call('runs', 'start', started(runId, [['look_up'], TEXT], { metadata: { text: `${TEXT} ${runId}` } })),
        ),
      );
      const crowdRuns = await lane.rest(host, crowd);
      const closedMs = await host.close(10_000);

      // Another process, which has seen nothing of it.
      const reader = await lane.boot('b', { direct: true, hasNotes: false, dataSource: { charset: undefined } });
      return {
        run,
        crowdRuns,
        closedMs,
        read: await reader.call('runs', 'get', 'run-1'),
        messages: await reader.call('runs', 'messages', 'run-1'),
        found: (await reader.call('runs', 'list', { metadata: { text: TEXT } })).runs.map(({ id }) => id),
        notFound: (await reader.call('runs', 'list', { metadata: { text: TEXT.replaceAll(/[^ ]/gu, '?') } })).runs,
        asks: (await reader.call('store', 'interactions', { runId: 'run-1', limit: 10 })).items,
        cancelled: await reader.call('store', 'readJournal', 'run-2', 0, 1_000),
        journal: await reader.call('store', 'readJournal', 'run-1', 0, 1_000),
        columns: await lane.query(
          `SELECT DISTINCT character_set_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name LIKE 'agent\\_%' AND character_set_name IS NOT NULL ORDER BY name`,
        ),
        latin1: await boots(lane, 'latin1'),
        utf8: await boots(lane, 'utf8'),
        unsound: await lane.unsound(['run-1', 'run-2']),
      };
    },

    tests(facts) {
      it('B125: prompts, arguments, results, metadata, notes and messages come back exactly', () => {
        const { read, run, messages, asks, found, journal } = facts();
        expect(run).toMatchObject({ status: 'completed', output: TEXT });
        expect(read).toEqual(run);
        expect(read.metadata).toEqual({ text: TEXT, other: 'x' });
        expect(found).toEqual(['run-1']);
        expect(facts().notFound).toEqual([]);
        const all = JSON.stringify(messages);
        expect(messages[0]?.content).toContainEqual(
          expect.objectContaining({ text: expect.stringMatching(new RegExp(`\\n${TEXT}$`, 'u')) }),
        );
        expect(all).toContain(JSON.stringify({ order: TEXT }));
        expect(all).toContain(JSON.stringify(VALUE));
        expect(messages).toContainEqual(
          expect.objectContaining({ role: 'user', content: [expect.objectContaining({ text: TEXT })] }),
        );
        expect(asks).toMatchObject([{ status: 'denied', decision: { note: TEXT } }]);
        expect(JSON.stringify(facts().cancelled)).toContain(TEXT);
        for (const { id, status, output, metadata } of facts().crowdRuns)
          expect([id, status, output, metadata]).toEqual([id, 'completed', TEXT, { text: `${TEXT} ${id}` }]);
        // Nothing was replaced on the way.
        expect(JSON.stringify([read, asks, journal])).not.toMatch(/\?\?|\ufffd/u);
        expect(facts().unsound).toEqual([]);
      });

      it('STO-5: the columns say for themselves what they hold', () => {
        expect(facts().columns.map(({ name }) => name)).toEqual(['ascii', 'utf8mb4']);
      });

      it('B125: a data source that could not carry it is refused at boot, and told what to do', () => {
        expect(facts().latin1).toMatch(/charset: 'utf8mb4'/);
        expect(facts().utf8).toMatch(/charset: 'utf8mb4'/);
        expect(facts().closedMs).toBeLessThan(5_000);
      });
    },
  });
}
