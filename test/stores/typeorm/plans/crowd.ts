// A database that has been in use for a long time: settled runs with their journals, and crowds of runs that wait. Made by the server itself from one row of
// each kind, which a store has written, so that a column more or less changes nothing here.
import type { DataSource } from 'typeorm';
import { TABLES } from '../../../../lib/stores/typeorm/tables.js';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { anInteraction, ask, beat, submit } from '../../../../packages/contract/lib/scenario.js';
import type { ServerType } from '../server-subject.js';

export interface CrowdSize {
  settled: number;
  journalRowsEach: number;
  waiting: number;
  pending: number;
  /** Backing off, due in an hour. */
  backingOff: number;
}

/** One agent that is offered here has most runs; of the runs of these there are few, or none can be executed here. */
export const RARE_AGENT = 'rare';
export const FOREIGN_AGENT = 'elsewhere';
/** One actor started most runs, such as a service account. */
export const COMMON_ACTOR = 'cron';
export const RARE_ACTOR = 'rare';
export const COMMON_TENANT = 'common';
export const RARE_TENANT = 'rare';
/** A session with a tenth of the settled runs in it. */
export const LONG_SESSION = 'long-session';

const HOUR_MS = 3_600_000;

export class Crowd {
  private readonly n: string;

  constructor(
    private readonly type: ServerType,
    private readonly dataSource: DataSource,
    private readonly store: TypeOrmRunStore,
  ) {
    this.n = type === 'postgres' ? 'CAST(g.n AS text)' : 'CAST(g.n AS CHAR)';
  }

  async gather(size: CrowdSize): Promise<void> {
    const { now } = await beat(this.store, 'worker-live');
    await this.templates(now);
    const { settled, waiting, pending, backingOff } = size;
    const text = this.n;
    const ago = (ms: string) => `${now} - ${ms}`;
    await this.runs(settled, {
      id: `CONCAT('settled-', ${text})`,
      status: `CASE WHEN MOD(g.n, 50) = 0 THEN 'failed' ELSE 'completed' END`,
      agent: `CASE WHEN MOD(g.n, 500) = 0 THEN '${RARE_AGENT}' ELSE 'support' END`,
      actor_id: `CASE WHEN MOD(g.n, 500) = 0 THEN '${RARE_ACTOR}' ELSE '${COMMON_ACTOR}' END`,
      created_at: ago(`${HOUR_MS} - g.n * 10`),
      updated_at: ago(`${HOUR_MS} - g.n * 10`),
      // Long past, as it is for every run that ever had one.
      deadline_at: ago(`${HOUR_MS} - g.n * 10`),
      session_id: `CASE WHEN MOD(g.n, 10) = 0 THEN '${LONG_SESSION}' ELSE CONCAT('session-', ${this.whole('g.n / 5')}) END`,
      session_order: 'g.n',
    });
    await this.journals('settled', size.journalRowsEach);
    await this.runs(waiting, {
      id: `CONCAT('waiting-', ${text})`,
      status: `'waiting'`,
      actor_id: `CASE WHEN MOD(g.n, 500) = 0 THEN '${RARE_ACTOR}' ELSE '${COMMON_ACTOR}' END`,
      waiting_for: `'["approval"]'`,
      created_at: ago(`${HOUR_MS} - g.n * 50`),
      updated_at: ago(`${HOUR_MS} - g.n * 50`),
      deadline_at: String(now + 24 * HOUR_MS),
      session_id: `CONCAT('asking-', ${text})`,
      session_order: '1',
    });
    await this.journals('waiting', 3);
    // Those who may execute the agent elsewhere are too few: its queue is as long as ours.
    await this.runs(pending, {
      id: `CONCAT('pending-', ${text})`,
      agent: `CASE WHEN MOD(g.n, 2) = 0 THEN '${FOREIGN_AGENT}' ELSE 'support' END`,
      created_at: ago(`${HOUR_MS} - g.n * 20`),
      updated_at: ago(`${HOUR_MS} - g.n * 20`),
    });
    await this.journals('pending', 1);
    await this.runs(backingOff, {
      id: `CONCAT('backing-off-', ${text})`,
      status: `'retry_wait'`,
      next_attempt_at: String(now + HOUR_MS),
      created_at: ago(`${HOUR_MS} - g.n * 20`),
      updated_at: ago(`${HOUR_MS} - g.n * 20`),
    });
    await this.interactions(size, now);
    await this.metadata();
    await this.dataSource.query(
      this.type === 'postgres' ? 'VACUUM ANALYZE' : `ANALYZE TABLE ${TABLES.map(({ table }) => table).join(', ')}`,
    );
  }

  /** One row of each kind as the store writes it. */
  private async templates(now: number): Promise<void> {
    await submit(this.store, { id: 'template', metadata: { tenant: 'template' }, createdAt: now, updatedAt: now });
    await ask(this.store, [anInteraction({ id: 'template', runId: 'template' })], 'template');
  }

  private runs(count: number, given: Record<string, string>): Promise<void> {
    const key = given['id'] ?? '';
    return this.multiply('agent_runs', count, { request_scope: key, request_id: key, ...given });
  }

  /** Between 300 and 400 bytes a row, as the workload of the benchmark leaves them. */
  private async journals(prefix: string, rowsEach: number): Promise<void> {
    const text = `CONCAT('[{"type":"tool.completed","at":', t.created_at, ',"key":"r1.m', g.n, '.t0","output":"', REPEAT('d', 300), '"}]')`;
    await this.insert(
      'agent_run_journal',
      {
        run_id: 't.id',
        first_sequence: 'g.n',
        entry_count: '1',
        attempt: '1',
        created_at: 't.created_at',
        totals: `'[1,1,10,0,5,0,15]'`,
        entries: text,
      },
      `agent_runs t CROSS JOIN ${this.series(rowsEach)} WHERE t.id LIKE '${prefix}-%'`,
    );
  }

  private async interactions({ settled, waiting }: CrowdSize, now: number): Promise<void> {
    const of = (id: string) => ({ id: `CONCAT('ask-', ${id})`, run_id: id });
    await this.multiply('agent_run_interactions', waiting, {
      ...of(`CONCAT('waiting-', ${this.n})`),
      session_id: `CONCAT('asking-', ${this.n})`,
      created_at: `${now} - ${HOUR_MS} + g.n * 50`,
      expires_at: String(now + 24 * HOUR_MS),
      agent: `CASE WHEN MOD(g.n, 500) = 0 THEN '${RARE_AGENT}' ELSE 'support' END`,
      approver_role: `CASE WHEN MOD(g.n, 500) = 0 THEN 'auditor' ELSE 'finance' END`,
      kind: `CASE WHEN MOD(g.n, 500) = 0 THEN 'question' ELSE 'approval' END`,
    });
    await this.multiply('agent_run_interactions', Math.floor(settled / 2), {
      ...of(`CONCAT('settled-', ${this.n})`),
      status: `CASE WHEN MOD(g.n, 3) = 0 THEN 'denied' ELSE 'used' END`,
      created_at: `${now} - ${HOUR_MS} + g.n * 10`,
      expires_at: `${now} - ${HOUR_MS} + g.n * 10`,
      decided_at: `${now} - ${HOUR_MS} + g.n * 10`,
    });
  }

  private metadata(): Promise<void> {
    const value = `CASE WHEN t.id LIKE '%00' THEN '${RARE_TENANT}' ELSE '${COMMON_TENANT}' END`;
    const columns = { run_id: 't.id', name: `'tenant'`, value, created_at: 't.created_at' };
    return this.insert('agent_run_metadata', columns, `agent_runs t WHERE t.id <> 'template'`);
  }

  /** Copies of the template, numbered by `g.n`, with some of its columns replaced. */
  private multiply(table: string, count: number, given: Record<string, string>): Promise<void> {
    const columns = TABLES.find((one) => one.table === table)?.columns ?? [];
    const values = Object.fromEntries(columns.map(({ name }) => [name, given[name] ?? `t.${name}`]));
    return this.insert(table, values, `${table} t CROSS JOIN ${this.series(count)} WHERE t.id = 'template'`);
  }

  private async insert(table: string, values: Record<string, string>, from: string): Promise<void> {
    await this.dataSource.query(
      `INSERT INTO ${table} (${Object.keys(values).join(', ')}) SELECT ${Object.values(values).join(', ')} FROM ${from}`,
    );
  }

  private series(count: number): string {
    return this.type === 'postgres'
      ? `generate_series(1, ${count}) AS g (n)`
      : `(SELECT seq AS n FROM seq_1_to_${Math.max(1, count)}) g`;
  }

  private whole(expression: string): string {
    return this.type === 'postgres' ? `CAST(${expression} AS text)` : `FLOOR(${expression})`;
  }
}
