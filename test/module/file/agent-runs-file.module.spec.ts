import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunService } from '../../../lib/engine/run-service.js';
import { scriptedModel } from '../../../lib/model/scripted/scripted-model.js';
import { AgentRunsFileModule } from '../../../lib/module/file/agent-runs-file.module.js';
import { agentWith, bootHost, quiet } from '../../support/nest-host.js';

describe('Runs in a directory', () => {
  const directory = mkdtempSync(join(tmpdir(), 'agent-runs-file-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const boot = () =>
    bootHost({
      imports: [AgentRunsFileModule.forRoot({ directory })],
      providers: [agentWith([])],
      runs: { ...quiet, models: { default: scriptedModel([{ text: 'Hi.' }]) } },
    });

  it('STO-7: outlive the application, whose lock is given back', async () => {
    const first = await boot();
    const { id } = await first.get(RunService).startAndWait({ agent: 'support', prompt: 'Hello' });
    await first.close();
    const second = await boot();
    expect(await second.get(RunService).get(id)).toMatchObject({ status: 'completed', output: 'Hi.' });
    await second.close();
  });

  it('CFG-1: without a directory the application does not boot', async () => {
    await expect(bootHost({ imports: [AgentRunsFileModule.forRoot({} as never)] })).rejects.toThrow(/directory/);
  });
});
