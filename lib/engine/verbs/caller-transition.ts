import { isText, readAnswer, type InputVerdict, type ScreenedInput } from '../../contracts/ports/host.port.js';
import { isOffered, wantedAndOffered } from '../../contracts/agent-definition.js';
import type { Message } from '../../contracts/message.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import { CONTRACT_VERSION, type RunRecord } from '../../contracts/run.js';
import { requireId } from '../../contracts/schema.js';
import { InputRefusedError, OperationConflictError, VersionUnavailableError } from '../../errors/request.errors.js';
import { offersOf } from '../claim-run.js';
import type { EnginePorts } from '../engine-ports.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { requireRunState, runNotFound } from '../journal/read-whole-journal.js';
import type { RunState } from '../journal/run-state.js';
import { NOTHING, type Transitions } from '../transitions.js';
import type { Unanswered } from '../unanswered.js';

/** Tries to decide on a journal that keeps moving under the reader. */
const MAX_READS = 5;

/**
 * How a caller's verb moves a run: one locked transition, published after its commit. The verbs decide; legality is the
 * table's; what happens next is a claim's business, here or in another process.
 */
export class CallerTransition {
  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly transitions: Transitions,
    private readonly unanswered: Unanswered,
  ) {}

  /**
   * @param inboxRequestId of a message that is sent, see `TransitionRequest`
   * @throws RunNotFoundError, and whatever the decider refuses with
   */
  move(
    runId: string,
    session: boolean,
    decide: (locked: LockedRun) => RunWrites,
    inboxRequestId?: string,
  ): Promise<RunRecord> {
    return this.unanswered.watch(async () => {
      const options = { session, ...(inboxRequestId !== undefined && { inboxRequestId }) };
      const answer = await this.transitions.apply(requireId('runId', runId), decide, options);
      if (answer.outcome !== 'done') throw runNotFound(runId);
      return answer.run;
    });
  }

  /**
   * A move that needs to know what the journal says: repeated until it was decided on the journal as it is.
   * @param stateless whether a decision needs no state after all: while the run has an owner, its journal moves under
   * every reader
   */
  async moveFolded(
    runId: string,
    session: boolean,
    decide: (locked: LockedRun, state: RunState) => RunWrites,
    stateless: (locked: LockedRun) => boolean = () => false,
  ): Promise<RunRecord> {
    const id = requireId('runId', runId);
    for (let tries = 1; ; tries++) {
      const stored = await requireRunState(this.ports.store, this.fold, id);
      let current = false;
      const run = await this.move(id, session, (locked) => {
        current = stateless(locked) || locked.run.sequence === stored.state.sequence;
        if (current) return decide(locked, stored.state);
        if (tries < MAX_READS) return NOTHING;
        throw new OperationConflictError(`Run ${id} keeps changing; look at it again and repeat the request.`, {
          details: { runId: id },
        });
      });
      if (current) return run;
    }
  }

  async load(runId: string): Promise<RunRecord> {
    const loaded = await this.ports.store.load(requireId('runId', runId));
    if (!loaded) throw runNotFound(runId);
    return loaded.run;
  }

  /** What the run was last given. */
  async inputOf(runId: string): Promise<Message[]> {
    return (await requireRunState(this.ports.store, this.fold, runId)).state.input;
  }

  /** @throws VersionUnavailableError when no live worker can execute the run */
  async requireExecutable(run: RunRecord): Promise<void> {
    const offers = offersOf(this.ports, await this.ports.store.liveWorkers());
    if (run.contractVersion <= CONTRACT_VERSION && isOffered(run, offers)) return;
    const { wanted, offered } = wantedAndOffered(run, offers);
    throw new VersionUnavailableError(
      `No live worker can execute run ${run.id}: it needs ${wanted}. Deploy that version and try again.`,
      { details: { wanted, offered } },
    );
  }
}

/**
 * Asks the guardrail about the input of a run. Null alone lets it pass: an answer that is no verdict refuses
 * too.
 * @returns why it is refused; null when it is not
 */
export async function screenInput(
  { guardrail, log }: Pick<EnginePorts, 'guardrail' | 'log'>,
  input: ScreenedInput,
): Promise<string | null> {
  if (!guardrail) return null;
  const answer: unknown = await guardrail.screen(input);
  if (answer === null) return null;
  const verdict = readAnswer<NonNullable<InputVerdict>>(answer, { refuse: isText });
  if (verdict) return verdict.refuse;
  log.error('the input guardrail answered neither null nor { refuse: text }; the input is refused', {
    runId: input.runId,
    kind: input.kind,
  });
  return 'the check of the input gave no verdict';
}

/** @throws InputRefusedError when the guardrail refuses what is said to an existing run */
export async function requireAccepted(
  ports: Pick<EnginePorts, 'guardrail' | 'log'>,
  { id: runId, agent, version, sessionId }: RunRecord,
  said: Pick<ScreenedInput, 'kind' | 'messages' | 'actor'>,
): Promise<void> {
  const refusal = await screenInput(ports, { ...said, agent, version, runId, sessionId });
  if (refusal === null) return;
  const subject = said.kind === 'prompt' ? 'prompt' : 'message';
  throw new InputRefusedError(`The ${subject} was refused: ${refusal}`, { details: { runId } });
}
