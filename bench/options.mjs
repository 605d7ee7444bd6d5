// The command line: `npm run bench -- --quick`, `--all`, `--db postgres://…`, `--only throughput,growth`, `--json FILE`.
import { parseArgs } from 'node:util';
import { MEASURES } from './measures.mjs';

const USAGE = `npm run bench -- [options]
  --db TARGET    what to measure; may be given several times: sqlite (FULL and NORMAL), sqlite-full, sqlite-normal,
                 mysql://user@host:port/, mariadb://…, postgres://user@host:port/database. Default: sqlite.
  --all          sqlite, and the servers at BENCH_MARIADB_URL and BENCH_POSTGRES_URL
                 (default mysql://root@127.0.0.1:3306/ and postgres://postgres@127.0.0.1:5432/postgres)
  --only LIST    some of: ${Object.keys(MEASURES).join(', ')}
  --rounds N     repetitions of the throughput figures (default 25, with --quick 5)
  --pool N       connections of the pool on a server, for the floor and the runs alike (default 10, TypeORM's own)
  --before DIR   a checkout of another version of this repository, built: cost is measured beside it too
  --quick        fewer repetitions and smaller samples: to see that it works, not to quote
  --json FILE    write everything that was measured
`;

export function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      db: { type: 'string', multiple: true },
      all: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      before: { type: 'string' },
      pool: { type: 'string', default: '10' },
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return { help: USAGE };
  const only = values.only?.split(',') ?? Object.keys(MEASURES);
  const unknown = only.filter((name) => !(name in MEASURES));
  if (unknown.length > 0) throw new Error(`There is no measure ${unknown.join(', ')}.\n\n${USAGE}`);
  return {
    targets: values.db ?? (values.all ? ['sqlite', ...servers()] : ['sqlite']),
    only,
    quick: values.quick,
    rounds: Number(values.rounds ?? (values.quick ? 5 : 25)),
    before: values.before,
    poolSize: Number(values.pool),
    json: values.json,
  };
}

function servers() {
  const { BENCH_MARIADB_URL, BENCH_POSTGRES_URL } = process.env;
  return [
    BENCH_MARIADB_URL ?? 'mysql://root@127.0.0.1:3306/',
    BENCH_POSTGRES_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  ];
}
