/** Messages and answers that fit one by one, and not into one packet of the server together. */
import { scriptedModel } from '../../../lib/model/scripted/scripted-model.js';
import { upTo } from '../../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines, tool } from '../../support/engine-harness.js';
import { signal } from '../../support/signal.js';
import { until } from '../../support/until.js';
import { describeServers, ServerSubject } from '../../stores/typeorm/server-subject.js';

const MB = 1_000_000;

describeServers('more than the server takes in one packet, on %s', (type) => {
  afterEach(() => stopEngines());
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it('STR-1: twelve messages of 2 MB are delivered, each once and in order', async () => {
    const subject = await ServerSubject.create(type);
    const { store } = await subject.open();
    const release = signal();
    const model = scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'done' }], { place: 'transcript' });
    const { runs } = await engineOver(store, agent(model, [tool('work', () => release.promise)]));
    await runs.start({ agent: 'support', prompt: 'go', runId: 'run-1' });
    for (const n of upTo(12))
      await runs.steer('run-1', `${n} ${'x'.repeat(2 * MB)}`, { sender: 'ann', requestId: `m-${n}` });
    release.resolve();
    await until(async () => (await store.load('run-1'))?.run.status === 'completed', 'the end', { withinMs: 30_000 });
    const read = await store.readJournal('run-1', 0, 1_000);
    const ids = read?.entries.flatMap((entry) => (entry.type === 'run.steered' ? [entry.requestId] : []));
    expect(ids).toEqual(upTo(12).map((n) => `m-${n}`));
    expect(store.traits.maxCommitBytes).toBeGreaterThan(MB);
    await subject.dispose();
  }, 60_000);
});
