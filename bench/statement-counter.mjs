// What a database was asked, counted where the driver sends it: queries, and transactions that wrote something.
const CONTROL = /^\s*(?:BEGIN|START TRANSACTION|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET|PRAGMA)\b/i;
const WRITE = /^\s*(?:(?:INSERT|UPDATE|DELETE|REPLACE)\b|WITH\b[^]*\b(?:INSERT|UPDATE|DELETE)\b)/i;

export class StatementCounter {
  /** Everything, BEGIN and COMMIT included: on a server each is a round trip. */
  statements = 0;
  queries = 0;
  commits = 0;
  /** Connection → whether its open transaction has written. */
  #open = new WeakMap();

  seen(connection, sql) {
    this.statements += 1;
    if (!CONTROL.test(sql)) {
      this.queries += 1;
      if (!WRITE.test(sql)) return;
      if (this.#open.has(connection)) this.#open.set(connection, true);
      else this.commits += 1;
    } else if (/^\s*(?:BEGIN|START)/i.test(sql)) {
      this.#open.set(connection, false);
    } else if (/^\s*(?:COMMIT|ROLLBACK(?! TO))/i.test(sql)) {
      if (/^\s*COMMIT/i.test(sql) && this.#open.get(connection)) this.commits += 1;
      this.#open.delete(connection);
    }
  }
}

/** Replaces methods of a driver's class. Returns what puts them back. */
export function watchMethods(prototype, names, seen) {
  const originals = names.map((name) => [name, prototype[name]]);
  for (const [name, original] of originals) {
    prototype[name] = function watched(...args) {
      seen(this, args);
      return original.apply(this, args);
    };
  }
  return () => {
    for (const [name, original] of originals) prototype[name] = original;
  };
}
