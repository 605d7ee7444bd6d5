// A process that is killed while it writes: `node file-store-writer.mjs <directory> <runs>`. It prints `open`, or the code of the refusal, and then one
// line for every commit that was answered: `<run> <value>`.
import { FileRunStore } from 'nestjs-agent-runs/file';

const [directory, runs] = [process.argv[2], Number(process.argv[3])];
const store = new FileRunStore({ directory });

const noUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
  unknownCalls: 0,
};
const totals = { turn: 0, results: 0, usage: noUsage };
const note = (delta) => ({ type: 'operation.late_result', at: 1, key: 'r1.m1.t0', attempt: 1, output: delta });
const say = (line) => process.stdout.write(`${line}\n`);

/** The run of this id, running for this process: made, or taken over from the one that was killed. */
async function claim(id) {
  const owner = `worker-${process.pid}`;
  const header = {
    id,
    status: 'pending',
    requestScope: `run:${id}`,
    requestId: id,
    sessionId: null,
    attempt: 0,
    contractVersion: 1,
  };
  const empty = { waitingFor: [], metadata: {}, restarts: 0, owner: null, nextAttemptAt: null, deadlineAt: null };
  await store.create({
    runId: id,
    sessionId: null,
    requestScope: header.requestScope,
    requestId: id,
    decide: ({ now, sameId }) =>
      sameId
        ? { do: 'return', run: sameId }
        : {
            do: 'insert',
            run: { ...empty, ...header, createdAt: now, updatedAt: now },
            entries: [],
            totals,
            session: null,
          },
  });
  const claimed = await store.transition({
    runId: id,
    decide: ({ run }) => ({
      result: null,
      run: {
        change: { status: 'running', attempt: run.attempt + 1, owner },
        entries: [note(`claim ${run.attempt + 1}`)],
      },
    }),
  });
  return claimed.run;
}

async function writeForEver(id) {
  const { attempt, sequence } = await claim(id);
  for (let next = sequence + 1; ; next += 1) {
    const value = `${attempt}:${next}:${'x'.repeat(next % 700)}`;
    await store.append({ runId: id, attempt, firstSequence: next, entries: [note(value)], totals });
    say(`${id} ${value}`);
  }
}

try {
  await store.open();
} catch (error) {
  say(error.code);
  process.exit(3);
}
say('open');
await Promise.all(Array.from({ length: runs }, (_, n) => writeForEver(`run-${n}`)));
