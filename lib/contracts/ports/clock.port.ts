/** Time for the engine. Ownership is judged by the database's clock instead (I12); this one serves timers and journal times. */
export interface Clock {
  /** Epoch ms by the wall clock, which may be set at any moment: for what is shown and recorded, never for a deadline. */
  now(): number;
  /**
   * Ms since some moment, on a clock that is never set back and that counts the time in which the machine was suspended: for deadlines. Only differences
   * mean something.
   */
  elapsed(): number;
  /**
   * Calls back once after `ms` (any length; longer than a platform timer allows included). Never keeps the process alive.
   * @returns cancels it; calling it again or late does nothing
   */
  after(ms: number, callback: () => void): () => void;
}
