/** How much CPU the process takes in one turn of the event loop; garbage collection on other threads counts too. */
function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

export class LoopTurns {
  #last = cpuMs();
  #longest = 0;
  #running = true;

  constructor() {
    const turn = () => {
      const now = cpuMs();
      this.#longest = Math.max(this.#longest, now - this.#last);
      this.#last = now;
      if (this.#running) setImmediate(turn);
    };
    setImmediate(turn);
  }

  /** Milliseconds of the longest turn since the last call. */
  take() {
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }

  stop() {
    this.#running = false;
  }
}
