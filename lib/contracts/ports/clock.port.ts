/** Time for the engine. Ownership is judged by the database's clock instead (I12); this one serves timers and journal times. */
export interface Clock {
  /** Epoch ms. */
  now(): number;
  /**
   * Calls back once after `ms` (any length; longer than a platform timer allows included). Never keeps the process alive.
   * @returns cancels it; calling it again or late does nothing
   */
  after(ms: number, callback: () => void): () => void;
}
