// What a racer can be ordered to do: the verbs of RunService, the three ways into its store with the plain deciders of the store contract, and what a host does
// in a transaction of its own.
import { RunRecovery } from 'nestjs-agent-runs';
// The deciders are not exported to users; the suites of stores and this one share them.
import * as scenario from '../../../../packages/contract/dist/modules/scenario.js';

const SERVICE = [
  'start',
  'get',
  'result',
  'sessionMessages',
  'cancel',
  'respond',
  'steer',
  'interrupt',
  'resume',
  'grantBudget',
  'denyBudget',
];

/** @param note tells the parent of something that was done */
export function verbsOf({ app, host, runs, store, note }) {
  const recovery = app.get(RunRecovery);
  return {
    ...Object.fromEntries(SERVICE.map((verb) => [verb, (...args) => runs[verb](...args)])),
    reconcile: () => recovery.reconcile(),
    expireInteractions: () => recovery.expireInteractions(),
    ...ownersVerbs(store, note),
    ...rivalsVerbs(store, held(host, note)),
    ...hostVerbs(host.dataSource, runs),
  };
}

/** Work whose COMMIT waits for `letGo`; the parent is told when it is reached. */
function held(host, note) {
  const locks = new Map();
  return {
    letGo: (name) => locks.get(name)(),
    holdBack: (name, work) => {
      if (name === null) return work();
      const letGo = new Promise((resolve) => locks.set(name, resolve));
      return host.holdBack(letGo, () => note({ tool: 'held', operationId: `${name}/` }), work);
    },
  };
}

/** What the owner of runs does. */
function ownersVerbs(store, note) {
  return {
    beat: (workerId, leaseMs) => scenario.beat(store, workerId, leaseMs),
    submit: async (id) => void (await scenario.submit(store, { id })),
    claim: (runId, workerId) => scenario.claim(store, runId, workerId),
    /** All of them in one turn of the event loop. @returns what each came to */
    append: (appends) =>
      Promise.all(
        appends.map(async ({ runId, attempt, firstSequence, values }) => {
          const entries = values.map(scenario.note);
          const { code } = await outcomeOf(
            store.append({ runId, attempt, firstSequence, entries, totals: scenario.totalsOf(0), isNext: true }),
          );
          note({ tool: 'append', operationId: `${runId}/` });
          return code;
        }),
      ),
    /** A decision that was taken on what was read before, without another look at what is there now. */
    ask: (runId, interaction) => scenario.ask(store, [scenario.anInteraction({ ...interaction, runId })], runId),
    message: (runId, message) =>
      store.transition({
        runId,
        decide: ({ now }) => ({ result: null, inbox: [{ ...message, runId, createdAt: now }] }),
      }),
    /** A change of the run as it was read: of any other it is none. */
    settleIf: async (runId, revision, status) => {
      const answer = await store.transition({
        runId,
        decide: ({ run, now }) =>
          run.revision === revision
            ? { result: 'settled', run: { change: { status, finishedAt: now }, entries: [scenario.note(status)] } }
            : { result: 'stale' },
      });
      return answer.result;
    },
    settle: (runId, status) => scenario.change(store, runId, { status }, [scenario.note(status)]),
  };
}

/** What takes a run away from its owner. */
function rivalsVerbs(store, { letGo, holdBack }) {
  const change = (runId, write) =>
    store.transition({ runId, decide: (locked) => ({ result: null, run: write(locked) }) });
  return {
    letGo,
    /** As a cancel does. @param name for `letGo`; null = nothing is held back */
    withdraw: (name, runId) =>
      holdBack(name, () =>
        change(runId, ({ now }) => ({
          change: { status: 'cancelled', finishedAt: now },
          entries: [scenario.note('rival')],
        })),
      ),
    /** As a takeover does. */
    seize: (name, runId) =>
      holdBack(name, () =>
        change(runId, ({ run }) => ({
          change: { status: 'running', attempt: run.attempt + 1, owner: 'rival' },
          entries: [scenario.note('rival')],
        })),
      ),
  };
}

/** A row of the host's, a run, and another row of the host's, in one transaction of the host at its own isolation level. */
function hostVerbs(dataSource, runs) {
  const mark = (manager, name) => manager.query(`INSERT INTO marks (name) VALUES ('${name}')`);
  const once = (options, name, ending) =>
    dataSource.transaction(async (manager) => {
      await mark(manager, `${name}-before`);
      const outcome = await outcomeOf(runs.start(options, { transaction: manager }));
      if (outcome.code === 'STORE_CONFLICT') throw new Conflict();
      await mark(manager, `${name}-after`);
      if (ending === 'rollback') throw new RolledBack(outcome);
      return outcome;
    });
  return {
    /** Repeated as a whole where the error asks for it. */
    startInside: async (options, name, ending) => {
      for (let repeats = 0; ; repeats++) {
        try {
          return { ...(await once(options, name, ending)), repeats };
        } catch (error) {
          if (error instanceof RolledBack) return { ...error.outcome, repeats };
          if (!(error instanceof Conflict)) throw error;
        }
      }
    },
  };
}

class Conflict extends Error {}

class RolledBack extends Error {
  constructor(outcome) {
    super('rolled back');
    this.outcome = outcome;
  }
}

function outcomeOf(work) {
  return work.then(
    (value) => ({ code: 'accepted', value }),
    (error) => ({ code: error.code ?? String(error) }),
  );
}
