/**
 * What a column holds; each database has its own type for it. `json` and `payload` are JSON text, a payload has passed
 * the codec of its run.
 */
export type ColumnHolds = 'key' | 'value' | 'word' | 'flag' | 'count' | 'number' | 'time' | 'json' | 'payload';

/**
 * A column is declared here and nowhere else: the DDL, the entities for hosts, the mapping between rows and records, and
 * the statements derive from it.
 */
export interface ColumnDefinition {
  readonly name: string;
  /** Of the record that a row stands for. */
  readonly property: string;
  readonly holds: ColumnHolds;
  /** No property of the record: made from the others for queries, or kept elsewhere in it. */
  readonly isDerived?: true;
  readonly isPrimary?: true;
  readonly isNullable?: true;
}

export interface IndexDefinition {
  readonly name: string;
  readonly columns: readonly string[];
  readonly isUnique?: true;
  /** Which rows are in it, on databases with partial indexes: the condition in the words in which the database tells it back. */
  readonly where?: Readonly<Partial<Record<'postgres' | 'better-sqlite3', string>>>;
}

export interface TableDefinition {
  readonly table: string;
  /** Name of the entity, for `dataSource.getRepository(name)`. */
  readonly entity: string;
  readonly columns: readonly ColumnDefinition[];
  readonly indexes: readonly IndexDefinition[];
  /**
   * Columns whose values depend on each other. Postgres keeps statistics about them together: taken for independent, it
   * may walk all runs of a status for a page of an actor that has none in it.
   */
  readonly correlated?: readonly (readonly string[])[];
}

type Extra = Partial<Omit<ColumnDefinition, 'name' | 'holds'>>;

const column = (name: string, holds: ColumnHolds, extra: Extra = {}): ColumnDefinition => ({
  name,
  property: name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  holds,
  ...extra,
});
const primary: Extra = { isPrimary: true };
const nullable: Extra = { isNullable: true };
const derived: Extra = { isDerived: true };

/** Only rows where the column is not null. */
const whereSet = (name: string): Pick<IndexDefinition, 'where'> => ({
  where: { postgres: `(${name} IS NOT NULL)`, 'better-sqlite3': `${name} IS NOT NULL` },
});

/** Only runs that wait for a worker. SQLite does not see that one status is among several, so there they are all in it. */
const whereClaimable: Pick<IndexDefinition, 'where'> = {
  where: {
    postgres: `((status)::text = ANY ((ARRAY['pending'::character varying, 'retry_wait'::character varying])::text[]))`,
  },
};

const whereBackingOff: Pick<IndexDefinition, 'where'> = {
  where: { postgres: `((status)::text = 'retry_wait'::text)`, 'better-sqlite3': `status = 'retry_wait'` },
};

export const RUNS: TableDefinition = {
  table: 'agent_runs',
  entity: 'AgentRun',
  columns: [
    column('id', 'key', primary),
    column('status', 'word'),
    column('attempt', 'count'),
    column('revision', 'count'),
    column('results', 'count', derived),
    column('owner', 'key', nullable),
    column('kind', 'word'),
    column('agent', 'key'),
    column('version', 'key'),
    column('definition_hash', 'key'),
    column('contract_version', 'count'),
    column('created_at', 'time'),
    column('updated_at', 'time'),
    column('next_attempt_at', 'time', nullable),
    column('answered_since', 'time', { ...nullable, ...derived }),
    column('deadline_at', 'time', nullable),
    column('claimed_at', 'time', nullable),
    column('started_at', 'time', nullable),
    column('finished_at', 'time', nullable),
    column('active_ms', 'number'),
    column('recoveries', 'count'),
    column('results_at_claim', 'count'),
    column('restarts', 'count'),
    column('budget_max_total_tokens', 'number', nullable),
    column('session_id', 'key', nullable),
    column('session_mode', 'word', nullable),
    column('session_order', 'count', nullable),
    column('history_run_id', 'key', nullable),
    column('history_captured', 'flag'),
    column('preceding_run_id', 'key', nullable),
    column('request_scope', 'key'),
    column('request_id', 'key'),
    column('request_digest', 'key'),
    column('actor_id', 'value', { ...nullable, ...derived }),
    column('waiting_for', 'json'),
    column('attention', 'payload', nullable),
    column('wake', 'payload', nullable),
    column('interrupt_request', 'payload', nullable),
    column('actor', 'payload', nullable),
    column('metadata', 'json'),
    column('error', 'payload', nullable),
    column('frozen', 'payload'),
    column('output', 'payload', nullable),
  ],
  indexes: [
    { name: 'agent_runs_request', columns: ['request_scope', 'request_id'], isUnique: true },
    { name: 'agent_runs_status', columns: ['status', 'created_at', 'id', 'results'] },
    {
      name: 'agent_runs_queue',
      columns: ['status', 'agent', 'version', 'definition_hash', 'created_at', 'id'],
      ...whereClaimable,
    },
    { name: 'agent_runs_due', columns: ['status', 'next_attempt_at'], ...whereBackingOff },
    { name: 'agent_runs_deadline', columns: ['status', 'deadline_at'], ...whereSet('deadline_at') },
    { name: 'agent_runs_answered', columns: ['answered_since'], ...whereSet('answered_since') },
    { name: 'agent_runs_list', columns: ['created_at', 'id'] },
    { name: 'agent_runs_agent', columns: ['agent', 'status', 'created_at', 'id'] },
    { name: 'agent_runs_actor', columns: ['actor_id', 'status', 'created_at', 'id'], ...whereSet('actor_id') },
    { name: 'agent_runs_session', columns: ['session_id', 'status', 'session_order'], ...whereSet('session_id') },
    {
      name: 'agent_runs_session_list',
      columns: ['session_id', 'status', 'created_at', 'id'],
      ...whereSet('session_id'),
    },
  ],
  correlated: [
    ['actor_id', 'status'],
    ['agent', 'status'],
  ],
};

export const JOURNAL: TableDefinition = {
  table: 'agent_run_journal',
  entity: 'AgentRunJournal',
  columns: [
    column('run_id', 'key', primary),
    column('first_sequence', 'count', primary),
    column('entry_count', 'count'),
    column('attempt', 'count'),
    column('created_at', 'time'),
    column('totals', 'json'),
    // Last: readers of the small columns then never touch the pages it overflows to.
    column('entries', 'payload'),
  ],
  indexes: [],
};

/** The order of interactions in every list. */
const ASKED = ['created_at', 'run_id', 'place', 'id'] as const;

export const INTERACTIONS: TableDefinition = {
  table: 'agent_run_interactions',
  entity: 'AgentRunInteraction',
  columns: [
    column('id', 'key', primary),
    column('run_id', 'key'),
    column('session_id', 'key', nullable),
    column('agent', 'key'),
    column('version', 'key'),
    column('kind', 'word'),
    column('status', 'word'),
    column('operation_key', 'key'),
    column('place', 'key', derived),
    column('digest', 'key'),
    column('approver_role', 'value', { ...nullable, ...derived }),
    column('created_at', 'time'),
    column('expires_at', 'time', nullable),
    column('decided_at', 'time', nullable),
    column('body', 'payload', derived),
  ],
  indexes: [
    { name: 'agent_run_interactions_run', columns: ['run_id', 'status'] },
    { name: 'agent_run_interactions_kind', columns: ['status', 'kind', ...ASKED] },
    { name: 'agent_run_interactions_session', columns: ['session_id', 'status', ...ASKED], ...whereSet('session_id') },
    { name: 'agent_run_interactions_agent', columns: ['agent', 'status', ...ASKED] },
    {
      name: 'agent_run_interactions_role',
      columns: ['approver_role', 'status', ...ASKED],
      ...whereSet('approver_role'),
    },
    { name: 'agent_run_interactions_expiry', columns: ['status', 'expires_at'] },
  ],
};

export const INBOX: TableDefinition = {
  table: 'agent_run_inbox',
  entity: 'AgentRunInboxMessage',
  columns: [
    column('run_id', 'key', primary),
    column('request_id', 'key', primary),
    column('position', 'count', { property: 'order' }),
    column('status', 'word'),
    column('created_at', 'time'),
    column('body', 'payload', derived),
  ],
  indexes: [],
};

export const SESSIONS: TableDefinition = {
  table: 'agent_sessions',
  entity: 'AgentSession',
  columns: [
    column('id', 'key', primary),
    column('mode', 'word'),
    column('owner', 'json', nullable),
    column('head_run_id', 'key', nullable),
    column('latest_completed_run_id', 'key', nullable),
    column('last_order', 'count'),
    column('started_order', 'count'),
  ],
  indexes: [],
};

export const WORKERS: TableDefinition = {
  table: 'agent_run_workers',
  entity: 'AgentRunWorker',
  columns: [
    column('id', 'key', primary),
    column('started_at', 'time'),
    column('heartbeat_at', 'time'),
    column('lease_expires_at', 'time'),
    column('offers', 'json'),
  ],
  indexes: [],
};

const metadata: TableDefinition = {
  table: 'agent_run_metadata',
  entity: 'AgentRunMetadata',
  columns: [
    column('run_id', 'key', primary),
    column('name', 'key', primary),
    column('value', 'value'),
    column('created_at', 'time'),
  ],
  indexes: [{ name: 'agent_run_metadata_value', columns: ['name', 'value', 'created_at', 'run_id'] }],
};

const schema: TableDefinition = {
  table: 'agent_runs_schema',
  entity: 'AgentRunsSchema',
  columns: [column('version', 'count', primary), column('min_reader', 'count')],
  indexes: [],
};

export const TABLES: readonly TableDefinition[] = [
  RUNS,
  JOURNAL,
  INTERACTIONS,
  INBOX,
  SESSIONS,
  WORKERS,
  metadata,
  schema,
];
