// Runs that are there already, as they are after a long time in use: copies that the database itself makes of a run that was executed.

/** At most so many copies. */
const NUMBERS = 2 ** 17;

export class Crowd {
  #query;
  #made = 0;

  /** @param query of an application */
  static async on(query) {
    const crowd = new Crowd();
    crowd.#query = query;
    await query('CREATE TABLE bench_numbers (n INTEGER PRIMARY KEY)');
    await query('INSERT INTO bench_numbers (n) VALUES (1)');
    for (let size = 1; size < NUMBERS; size *= 2)
      await query(`INSERT INTO bench_numbers (n) SELECT n + ${size} FROM bench_numbers`);
    return crowd;
  }

  /** Copies of a run, its journal and its asks; out of any session. */
  async copy(runId, count) {
    this.#made += 1;
    const name = `copy-${this.#made}-`;
    await this.#copyRows('agent_runs', 'id', runId, count, {
      id: `CONCAT('${name}', g.n)`,
      request_id: `CONCAT('${name}', g.n)`,
    });
    await this.#copyRows('agent_run_journal', 'run_id', runId, count, { run_id: `CONCAT('${name}', g.n)` });
    await this.#copyRows('agent_run_interactions', 'run_id', runId, count, {
      id: `CONCAT('${name}', g.n, t.operation_key)`,
      run_id: `CONCAT('${name}', g.n)`,
    });
  }

  async #copyRows(table, key, runId, count, given) {
    const [row] = await this.#query(`SELECT * FROM ${table} WHERE ${key} = '${runId}' LIMIT 1`);
    if (!row) return;
    const columns = Object.keys(row);
    const values = columns.map((column) => given[column] ?? `t.${column}`);
    await this.#query(
      `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM ${table} t, bench_numbers g WHERE t.${key} = '${runId}' AND g.n <= ${count}`,
    );
  }
}
