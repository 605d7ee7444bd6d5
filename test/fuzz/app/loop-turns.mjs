/** How much CPU the process takes in one turn of the event loop; garbage collection on other threads counts too. */
function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

class LoopTurns {
  #last = cpuMs();
  #longest = 0;
  #counts = true;

  constructor() {
    const turn = () => {
      const now = cpuMs();
      if (this.#counts) this.#longest = Math.max(this.#longest, now - this.#last);
      this.#counts = true;
      this.#last = now;
      setImmediate(turn).unref();
    };
    setImmediate(turn).unref();
  }

  /** Does the test's own work in a turn that does not count. */
  async uncounted(work) {
    await new Promise(setImmediate);
    const result = work();
    this.#counts = false;
    await new Promise(setImmediate);
    return result;
  }

  /** Milliseconds of the longest turn since the last call. */
  take() {
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }
}

export const turns = new LoopTurns();
