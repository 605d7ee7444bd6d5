import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import { Agent } from '../../lib/decorators/provider.decorators.js';
import { RunService } from '../../lib/engine/run-service.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { bootHost } from '../support/nest-host.js';

@Injectable()
class Refunds {
  @AgentTool({ name: 'refund', description: 'refunds in full', input: {}, recovery: 'safe' })
  inFull(): string {
    return 'in full';
  }

  @AgentTool({ name: 'refund', version: '2', description: 'refunds a part', input: {}, recovery: 'safe' })
  inPart(): string {
    return 'in part';
  }
}

@Agent({ name: 'support', version: '1', instructions: 'Help.', tools: ['refund@1'] })
class SupportOne {}

@Agent({ name: 'support', version: '2', instructions: 'Help.', tools: ['refund@2'] })
class SupportTwo {}

describe('two versions of a tool', () => {
  it('JRN-7: live side by side, each behind the agents that name it', async () => {
    const model = scriptedModel([{ calls: [{ name: 'refund' }] }, { echo: true }], { place: 'transcript' });
    const app = await bootHost({
      providers: [Refunds, SupportOne, SupportTwo],
      runs: { trigger: false, models: { default: model } },
    });
    const runs = app.get(RunService);
    const outputs = await Promise.all(
      ['1', '2'].map(
        async (version) => (await runs.startAndWait({ agent: 'support', version, prompt: 'refund' })).output,
      ),
    );
    expect(outputs).toEqual(['in full', 'in part']);
    expect(runs.definitions()[0]?.versions.map(({ tools }) => tools.map((tool) => tool.version))).toEqual([
      ['1'],
      ['2'],
    ]);
    await app.close();
  });
});
