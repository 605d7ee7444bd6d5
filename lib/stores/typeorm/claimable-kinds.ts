/**
 * Which kinds of runs (agent, version, definition) wait for a worker. There are few kinds however many runs wait: an index is asked for the first kind, then for
 * the one after it, and so on.
 */
import type { Dialect } from './dialect.js';
import { queryOne, type Program } from './program.js';

export interface RunKind {
  readonly agent: string;
  readonly version: string;
  readonly definitionHash: string;
}

export function* claimableKinds(dialect: Dialect, status: 'pending' | 'retry_wait'): Program<RunKind[]> {
  const kinds: RunKind[] = [];
  for (let kind = yield* kindAfter(dialect, status, null); kind; kind = yield* kindAfter(dialect, status, kind))
    kinds.push(kind);
  return kinds;
}

/** The next hash, else the next version, else the next agent: three looks, because not every database finds the place after a triple in an index. */
function* kindAfter({ tables, walking }: Dialect, status: string, last: RunKind | null): Program<RunKind | null> {
  const first = (condition: string): string =>
    `SELECT * FROM (SELECT r.agent AS agent, r.version AS version, r.definition_hash AS hash FROM ${tables.runs} r${walking('agent_runs_queue')} ` +
    `WHERE r.status = '${status}'${condition} ORDER BY r.agent, r.version, r.definition_hash LIMIT 1) next_one`;
  const looks = last
    ? [
        ' AND r.agent = ? AND r.version = ? AND r.definition_hash > ?',
        ' AND r.agent = ? AND r.version > ?',
        ' AND r.agent > ?',
      ]
    : [''];
  const { agent = '', version = '', definitionHash = '' } = last ?? {};
  const row = yield* queryOne(
    `SELECT * FROM (${looks.map(first).join(' UNION ALL ')}) next_ones ORDER BY agent, version, hash LIMIT 1`,
    last ? [agent, version, definitionHash, agent, version, agent] : [],
  );
  if (!row) return null;
  return {
    agent: row['agent'] as string,
    version: row['version'] as string,
    definitionHash: row['hash'] as string,
  };
}
