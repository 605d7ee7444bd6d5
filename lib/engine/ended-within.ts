/** Waiting that has an end of its own: for what may hang, such as a method of the host's or a database that does not answer. */
import type { Clock } from '../contracts/ports/clock.port.js';

/** Whether the work ended, in whatever way, within so many ms. Otherwise it goes on, unwatched. Never rejects. */
export async function endedWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  let cancel: () => void = () => undefined;
  const passed = new Promise<false>((resolve) => (cancel = clock.after(ms, () => resolve(false))));
  const ended = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([ended, passed]);
  } finally {
    cancel();
  }
}
