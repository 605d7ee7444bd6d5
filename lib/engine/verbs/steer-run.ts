import type { InboxMessage } from '../../contracts/interaction.js';
import type { JsonValue } from '../../contracts/json.js';
import type { Message } from '../../contracts/message.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { SteerOptions, SteerReceipt } from '../../contracts/run-requests.js';
import { isSettled } from '../../contracts/run-status.js';
import { readRequest, requireId, requireOptions } from '../../contracts/schema.js';
import { IllegalTransitionError, RequestConflictError } from '../../errors/request.errors.js';
import type { EnginePorts } from '../engine-ports.js';
import { requireFit } from '../requests/payload.js';
import { userMessage } from '../requests/prompt-messages.js';
import { STEER } from '../requests/request-schemas.js';
import type { RunWorker } from '../run-worker.js';
import { NOTHING } from '../transitions.js';
import { requireAccepted, type CallerTransition } from './caller-transition.js';

/**
 * `steer`: a message into an open run's durable inbox. Delivered exactly once, in order, at a boundary; refused once
 * the run is settled, because the same lock orders it against the settling. The same request id with the same message
 * is the same message.
 */
export class SteerRun {
  constructor(
    private readonly ports: EnginePorts,
    private readonly worker: RunWorker,
    private readonly callers: CallerTransition,
  ) {}

  /**
   * @throws RequestConflictError, IllegalTransitionError, InputRefusedError, InvalidRequestError, PayloadTooLargeError
   */
  async steer(runId: string, text: string, options: SteerOptions): Promise<SteerReceipt> {
    const id = requireId('runId', runId);
    requireOptions(options);
    const given = readRequest(STEER, { ...options, message: text });
    const { sender, requestId = this.ports.ids.id() } = given;
    const message = { ...userMessage(given.message), kind: 'steering', sender } as Message;
    requireFit('The message', message, this.ports.options.maxPayloadBytes);
    if (this.ports.guardrail)
      await requireAccepted(this.ports, await this.callers.load(id), {
        kind: 'steering',
        messages: [message],
        actor: { id: sender },
      });
    await this.callers.move(
      id,
      false,
      (locked) => accept(locked, { requestId, sender, message: message as unknown as JsonValue }, this.ports),
      requestId,
    );
    this.worker.noticeInbox(id);
    return { messageId: requestId, status: 'queued' };
  }
}

function accept(
  locked: LockedRun,
  given: Pick<InboxMessage, 'requestId' | 'sender' | 'message'>,
  { digester }: Pick<EnginePorts, 'digester'>,
): RunWrites {
  const { run, now } = locked;
  const [before] = locked.inbox;
  if (before?.status === 'withdrawn')
    throw new IllegalTransitionError(
      `Message ${given.requestId} was withdrawn when run ${run.id} ended, and was never delivered. Send it again under a new request id.`,
      { details: { runId: run.id, status: run.status, verb: 'steer' } },
    );
  if (before) {
    if (digester.canonical(before.message) === digester.canonical(given.message)) return NOTHING;
    throw new RequestConflictError(`Request id ${given.requestId} was used for another message to run ${run.id}.`, {
      details: { runId: run.id },
    });
  }
  if (isSettled(run.status)) {
    throw new IllegalTransitionError(`Run ${run.id} is ${run.status}: it takes no more messages.`, {
      details: { runId: run.id, status: run.status, verb: 'steer' },
    });
  }
  const order = locked.lastMessageOrder + 1;
  return { inbox: [{ ...given, runId: run.id, order, status: 'queued', createdAt: now }] };
}
