import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { JsonObject } from '../../../lib/contracts/json.js';
import { AGENT_RUNS_STORE } from '../../../lib/decorators/inject-run-store.decorator.js';
import { AgentTool } from '../../../lib/decorators/tool.decorators.js';
import { RunService } from '../../../lib/engine/run-service.js';
import { scriptedModel } from '../../../lib/model/scripted/scripted-model.js';
import { AGENT_RUNS_STORE_CHECK, type StoreCheck } from '../../../lib/module/agent-runs-module.tokens.js';
import {
  AgentRunsTypeOrmModule,
  connectionPoolSize,
  type ToolContext,
} from '../../../lib/module/typeorm/agent-runs-typeorm.module.js';
import { TypeOrmRunStore } from '../../../lib/stores/typeorm/typeorm-run.store.js';
import { agentWith, bootHost, bootProblems, quiet } from '../../support/nest-host.js';

@Injectable()
class NoteTools {
  @AgentTool({
    name: 'add_note',
    description: 'Adds a note.',
    input: { properties: { text: { type: 'string' } }, required: ['text'] },
    recovery: 'transactional',
  })
  async add({ text }: JsonObject, context: ToolContext) {
    await context.manager.query('INSERT INTO notes (text, operation_id) VALUES (?, ?)', [text, context.operationId]);
    return { written: text };
  }
}

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'agent-runs-typeorm-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const sqlite = (name?: string) =>
  TypeOrmModule.forRoot({
    type: 'better-sqlite3',
    database: join(directory, 'app.sqlite'),
    ...(name !== undefined && { name }),
  });

describe("Runs in the host's database", () => {
  it.each([
    ['orders', /no data source "orders".* name: 'orders'.* option dataSource/],
    [undefined, /no data source "default"/],
  ])('CFG-10: a data source that is missing (%s) is told by the name of the option', async (dataSource, told) => {
    const boot = bootHost({
      imports: [
        ...(dataSource === undefined ? [] : [sqlite()]),
        AgentRunsTypeOrmModule.forRoot({ ...(dataSource !== undefined && { dataSource }) }),
      ],
      providers: [agentWith([])],
      runs: quiet,
    });
    await expect(boot).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
    await expect(boot).rejects.toThrow(told);
  });

  it("CFG-10: lives on the host's data source, by its name, and leaves its connection open", async () => {
    const app = await bootHost({
      imports: [sqlite(), sqlite('second'), AgentRunsTypeOrmModule.forRoot({ dataSource: 'second', migrate: true })],
      providers: [agentWith([])],
      runs: { ...quiet, models: { default: scriptedModel([{ text: 'Hi.' }]) } },
    });
    const store = app.get<TypeOrmRunStore>(AGENT_RUNS_STORE, { strict: false });
    expect(store).toBeInstanceOf(TypeOrmRunStore);
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'Hello' });
    expect(run.output).toBe('Hi.');
    const second = app.get<DataSource>(getDataSourceToken('second'));
    expect(await second.query('SELECT id FROM agent_runs')).toEqual([{ id: run.id }]);
    await store.close();
    expect(second.isInitialized).toBe(true);
    await app.close();
    expect(second.isInitialized).toBe(false);
  });

  it('CFG-5: in production a SQLite database in memory is refused like any store that forgets', async () => {
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      const problems = await bootProblems({
        imports: [
          TypeOrmModule.forRoot({ type: 'better-sqlite3', database: ':memory:' }),
          AgentRunsTypeOrmModule.forRoot({ migrate: true }),
        ],
        providers: [agentWith([])],
        runs: { ...quiet, models: { default: scriptedModel() } },
      });
      expect(problems).toEqual([expect.stringMatching(/typeorm:better-sqlite3 does not outlive the process/)]);
    } finally {
      process.env['NODE_ENV'] = before;
    }
  });

  it('JRN-5b: a transactional tool writes through context.manager', async () => {
    const model = scriptedModel([{ calls: [{ name: 'add_note', args: { text: 'fragile' } }] }, { text: 'Noted.' }]);
    const app = await bootHost({
      imports: [sqlite(), AgentRunsTypeOrmModule.forRoot({ migrate: true })],
      providers: [NoteTools, agentWith([NoteTools])],
      runs: { ...quiet, models: { default: model } },
    });
    const dataSource = app.get(DataSource);
    await dataSource.query('CREATE TABLE notes (text TEXT, operation_id TEXT)');
    const run = await app.get(RunService).startAndWait({ agent: 'support', prompt: 'Note it' });
    expect(run.status).toBe('completed');
    expect(await dataSource.query('SELECT * FROM notes')).toEqual([
      { text: 'fragile', operation_id: `${run.id}/r1.m1.t0` },
    ]);
    await app.close();
  });

  it('CFG-1: unknown options and a duration that is none are refused at once', () => {
    expect(() => AgentRunsTypeOrmModule.forRoot({ datasource: 'x' } as never)).toThrow(
      /no option "datasource"; known are dataSource, migrate, statementTimeout/,
    );
    expect(() => AgentRunsTypeOrmModule.forRoot({ statementTimeout: 'soon' as never })).toThrow(
      /statementTimeout is "soon"/,
    );
  });

  // B135
  it.each([0, -1, Number.NaN, Infinity, 2 ** 31, Number.MAX_SAFE_INTEGER])(
    'CFG-1: a timeout of %p, which no timer can wait, is refused, by the store itself too',
    (timeout) => {
      expect(() => AgentRunsTypeOrmModule.forRoot({ statementTimeout: timeout })).toThrow(/statementTimeout is /);
      const dataSource = new DataSource({ type: 'better-sqlite3', database: ':memory:' });
      expect(() => new TypeOrmRunStore(dataSource, { statementTimeoutMs: timeout })).toThrow(/statementTimeoutMs is /);
    },
  );

  it('CFG-1: what the store has to say about transactional tools is part of the one error', async () => {
    const check: StoreCheck = ({ transactionalTools }) => [`too small for ${transactionalTools.join()}`];
    const checking = {
      module: class CheckingModule {},
      global: true,
      providers: [{ provide: AGENT_RUNS_STORE_CHECK, useValue: check }],
      exports: [AGENT_RUNS_STORE_CHECK],
    };
    expect(await bootProblems({ imports: [checking], providers: [NoteTools, agentWith(['gone'])] })).toEqual([
      expect.stringMatching(/the store memory has no transactions/),
      expect.stringMatching(/names the tool 'gone'/),
      'too small for add_note',
    ]);
  });
});

describe('The pool of a data source (decision a-tool-in-a-transaction)', () => {
  it.each<[object, number | null]>([
    [{ type: 'better-sqlite3' }, null],
    [{ type: 'sqljs' }, null],
    [{ type: 'postgres' }, 10],
    [{ type: 'postgres', poolSize: 1 }, 1],
    [{ type: 'postgres', poolSize: 5, extra: { max: 1 } }, 1],
    [{ type: 'mysql', extra: { connectionLimit: 3 } }, 3],
    [{ type: 'mariadb', poolSize: 2 }, 2],
  ])('of %j is %j', (options, size) => {
    expect(connectionPoolSize(options as DataSourceOptions)).toBe(size);
  });
});
