/** What about a server, or about a host's connection to it, would break runs later, told when the store opens. */
import type { DataSourceOptions } from 'typeorm';
import type { Row } from '../program.js';

/** Columns that are judged; takes {@link EMOJI}. */
export const CHECKED =
  'HEX(?) AS hex, @@max_allowed_packet AS max_packet, @@autocommit AS autocommit, @@sql_mode AS sql_mode';
export const EMOJI = '\u{1F600}';

/** Variables that are judged. */
export const SHOWN = `SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format')`;

const LEAST_PACKET_BYTES = 1024 * 1024;

/** The answer to {@link SHOWN} as one row. */
export function variablesOf(rows: readonly Row[]): Row {
  return Object.fromEntries<unknown>(rows.map((row) => [String(row['Variable_name']), row['Value']]));
}

/** @param found the columns of {@link CHECKED} and the variables of {@link SHOWN} */
export function mysqlProblems(found: Row, options: DataSourceOptions): string[] {
  const { hex, max_packet, autocommit, sql_mode, log_bin, binlog_format } = found;
  const problems: string[] = [];
  if (Number(max_packet) < LEAST_PACKET_BYTES) {
    problems.push(
      `max_allowed_packet of the database server is ${String(max_packet)} bytes, which is too little for the steps of a run. Set it to ${LEAST_PACKET_BYTES} or more.`,
    );
  }
  if (hex !== 'F09F9880') {
    problems.push(
      "The data source's connection does not carry all of Unicode: an emoji sent to the database did not arrive. Set `charset: 'utf8mb4'` in its options.",
    );
  }
  if (Number(autocommit) !== 1) {
    problems.push(
      "The data source's connection has `autocommit` off: what is written outside of a transaction would never be committed. Leave it on for this user.",
    );
  }
  if (/\bORACLE\b/.test(String(sql_mode))) {
    problems.push(
      "The data source's connection has the `sql_mode` ORACLE, in which the statements of this package mean something else. Leave it out for this user.",
    );
  }
  if (log_bin === 'ON' && binlog_format === 'STATEMENT') {
    problems.push(
      'The database server writes its binary log with `binlog_format` STATEMENT, with which InnoDB refuses whatever is written at READ COMMITTED. Set it to ROW or MIXED.',
    );
  }
  if (forgetsServers(options)) {
    problems.push(
      'The data source has `replication` without `restoreNodeTimeout`: after five connections that could not be made, its driver gives the server up for good, and this process never gets a connection again. Set `restoreNodeTimeout: 1000` (ms) in `replication`.',
    );
  }
  return problems;
}

/** mysql2's cluster of pools, which tries five times in a row by itself: one try during an outage is enough. */
function forgetsServers(options: DataSourceOptions): boolean {
  const { replication } = options as { replication?: { restoreNodeTimeout?: number } };
  return replication !== undefined && !((replication.restoreNodeTimeout ?? 0) > 0);
}
