// Whether a long run gets slower and fatter with every turn: the usual fault of journals that store the whole conversation again.
import { startApplication } from '../application.mjs';
import { promptOf } from '../instant-model.mjs';
import { median } from '../statistics.mjs';

const TURNS = 400;
/** Turns whose median stands for "around turn n". */
const AROUND = { 50: [40, 60], 200: [190, 210], 400: [380, 400] };

export async function measureGrowth(database, { quick }) {
  const app = await startApplication(database);
  try {
    for (let warmUp = 0; warmUp < 30; warmUp += 1) await app.complete(promptOf({ turns: 10 }));
    const timings = [];
    let runId;
    for (let round = 0; round < (quick ? 2 : 7); round += 1) {
      const requestedAt = [];
      app.model.onRequest = () => requestedAt.push(performance.now());
      runId = await app.complete(promptOf({ turns: TURNS }));
      timings.push(requestedAt.slice(1).map((at, index) => at - requestedAt[index]));
    }
    app.model.onRequest = () => undefined;
    const sizes = await journalSizes(app, runId);
    const ms = around((from, to) => median(timings.flatMap((timing) => timing.slice(from, to))));
    // Two journal rows for each turn: the reply with the next intent, the result with the next request.
    const bytes = around((from, to) => sum(sizes.slice(2 * from, 2 * to)) / (to - from));
    return {
      ms,
      bytes,
      ratioMs: ms[400] / ms[50],
      ratioBytes: bytes[400] / bytes[50],
      large: await measureLarge(app, database),
    };
  } finally {
    await app.close();
  }
}

/** WT(200, 1 kB results): what it leaves in the database. */
async function measureLarge(app, database) {
  const before = await database.bytesStored();
  const runId = await app.complete(promptOf({ turns: 200, bytes: 1_000 }));
  const after = await database.bytesStored();
  const [{ header }] = await app.query(
    `SELECT OCTET_LENGTH(frozen) + OCTET_LENGTH(COALESCE(output, '')) + 600 AS header FROM agent_runs WHERE id = '${runId}'`,
  );
  return {
    journalBytes: sum(await journalSizes(app, runId)) + Number(header),
    fileBytes: before === null ? null : after - before,
  };
}

async function journalSizes(app, runId) {
  const rows = await app.query(
    `SELECT OCTET_LENGTH(entries) + OCTET_LENGTH(totals) + OCTET_LENGTH(run_id) + 24 AS size FROM agent_run_journal WHERE run_id = '${runId}' ORDER BY first_sequence`,
  );
  return rows.map(({ size }) => Number(size));
}

function around(measure) {
  return Object.fromEntries(Object.entries(AROUND).map(([turn, [from, to]]) => [turn, measure(from, to)]));
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
