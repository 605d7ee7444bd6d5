import { Injectable, type DynamicModule } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import { RunStore } from '../../../lib/contracts/ports/run-store.port.js';
import { Agent } from '../../../lib/decorators/provider.decorators.js';
import { AgentTool } from '../../../lib/decorators/tool.decorators.js';
import { RunService } from '../../../lib/engine/run-service.js';
import { scriptedModel } from '../../../lib/model/scripted/scripted-model.js';
import { AgentRunsModule } from '../../../lib/module/agent-runs.module.js';
import { AgentRunsMemoryModule } from '../../../lib/module/memory/agent-runs-memory.module.js';
import { AgentRunsTypeOrmModule, type ToolContext } from '../../../lib/module/typeorm/agent-runs-typeorm.module.js';
import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';

@Injectable()
class NoteTools {
  @AgentTool({ name: 'add_note', description: 'Adds a note.', input: {}, recovery: 'transactional' })
  async add(_input: object, { manager }: ToolContext) {
    await manager.insert('notes', { text: 'called' });
    return { added: true };
  }
}

@Agent({ name: 'support', version: '1', instructions: 'Help.', tools: [NoteTools] })
class SupportAgent {}

/** A test of a host as its people write it; `stores` keep the runs. */
function hostTest(stores: DynamicModule[]) {
  const model = scriptedModel([{ calls: [{ name: 'add_note' }] }, { text: 'Noted.' }]);
  return Test.createTestingModule({
    imports: [...stores, AgentRunsModule.forRoot({ trigger: false, models: { default: model } })],
    providers: [SupportAgent, NoteTools],
  });
}

function standIn() {
  const rows: unknown[] = [];
  return { rows, manager: { insert: async (...row: unknown[]) => void rows.push(row) } };
}

it('JRN-5b: a transactional tool gets the manager that the test gives, and its result is recorded', async () => {
  const { rows, manager } = standIn();
  const testing = await hostTest([AgentRunsMemoryModule.forRoot({ manager })]).compile();
  await testing.init();
  const runs = testing.get(RunService);
  const { id, output } = await runs.startAndWait({ agent: 'support', prompt: 'Note it.' });
  expect(output).toBe('Noted.');
  expect(rows).toEqual([['notes', { text: 'called' }]]);
  const { operations } = await runs.snapshot(id);
  expect(operations[1]).toMatchObject({ name: 'add_note', status: 'completed' });
  await testing.close();
});

it('JRN-5b: a method that throws is an error told to the model; its own execution is over', async () => {
  const manager = { insert: () => Promise.reject(new Error('duplicate')) };
  const testing = await hostTest([AgentRunsMemoryModule.forRoot({ manager })]).compile();
  await testing.init();
  const runs = testing.get(RunService);
  const { id, status } = await runs.startAndWait({ agent: 'support', prompt: 'Note it.' });
  expect(status).toBe('completed');
  expect((await runs.snapshot(id)).operations[1]).toMatchObject({ name: 'add_note', status: 'failed' });
  await testing.close();
});

it('JRN-5b: without a manager the boot says what a test can do', async () => {
  const testing = await hostTest([AgentRunsMemoryModule.forRoot()]).compile();
  await expect(testing.init()).rejects.toThrow('in a test, AgentRunsMemoryModule.forRoot({ manager })');
});

it('the store of an application can be replaced in its test', async () => {
  const { rows, manager } = standIn();
  const database = TypeOrmModule.forRoot({ type: 'better-sqlite3', database: ':memory:' });
  const testing = await hostTest([database, AgentRunsTypeOrmModule.forRoot()])
    .overrideProvider(RunStore)
    .useValue(new MemoryRunStore({ manager }))
    .compile();
  await testing.init();
  expect((await testing.get(RunService).startAndWait({ agent: 'support', prompt: 'Note it.' })).output).toBe('Noted.');
  expect(rows).toHaveLength(1);
  await testing.close();
});
