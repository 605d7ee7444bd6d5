import type { EnginePorts } from './engine-ports.js';
import { JournalFold } from './journal/fold-journal.js';
import { LifecyclePublisher } from './lifecycle-publisher.js';
import { PendingLimit } from './pending-limit.js';
import { RunMetrics, RunService } from './run-service.js';
import { RunRecovery } from './run-recovery.js';
import { RunStreams } from './run-streams.js';
import { RunSignals } from './run-signals.js';
import { RunWaits } from './run-waits.js';
import { RunWorker } from './run-worker.js';
import { Transitions } from './transitions.js';
import { Unanswered } from './unanswered.js';
import { AnswerInteraction } from './verbs/answer-interaction.js';
import { CallerTransition } from './verbs/caller-transition.js';
import { StartRun } from './verbs/start-run.js';

export interface Engine {
  runs: RunService;
  worker: RunWorker;
  recovery: RunRecovery;
  metrics: RunMetrics;
  ports: EnginePorts;
  /**
   * Callers that wait for runs get them as they are, and streams are interrupted, now and from now on: this process is
   * about to end.
   */
  stopWaiting(): void;
  /** Resolves when every verb that has begun was answered, or so many ms later. */
  answered(ms: number): Promise<void>;
}

/**
 * Puts the engine together from its ports: the one place that knows every part. Plain TypeScript; the module layer wraps
 * it for Nest.
 */
export function createEngine(ports: EnginePorts): Engine {
  const fold = new JournalFold(ports.digester);
  const signals = new RunSignals(ports.clock);
  const streams = new RunStreams(ports);
  const publisher = new LifecyclePublisher(ports, signals, streams);
  const unanswered = new Unanswered(ports.clock);
  const waits = new RunWaits(ports.scope, ports.options.maxConcurrentRuns);
  const transitions = new Transitions(ports.store, publisher);
  const worker = new RunWorker(ports, fold, publisher, transitions, waits);
  const callers = new CallerTransition(ports, fold, transitions, unanswered);
  const runs = new RunService({
    ports,
    fold,
    signals,
    streams,
    unanswered,
    waits,
    worker,
    callers,
    starting: new StartRun(ports, fold, worker, publisher, new PendingLimit(ports), unanswered),
    answering: new AnswerInteraction(ports, worker, callers),
  });
  return {
    runs,
    worker,
    recovery: new RunRecovery(ports, worker, transitions, callers),
    metrics: new RunMetrics(ports.store),
    ports,
    stopWaiting: () => {
      signals.release();
      streams.release();
    },
    answered: (ms) => unanswered.settled(ms),
  };
}
