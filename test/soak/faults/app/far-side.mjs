// The world outside, at the other end of the IPC channel: it notes that it was asked, does what is asked for, and answers when it likes.
export class FarSide {
  #waiting = new Map();
  #asked = 0;

  constructor() {
    process.on('message', ({ answer, value }) => {
      if (answer === undefined) return;
      this.#waiting.get(answer)(value);
      this.#waiting.delete(answer);
    });
  }

  /** @param call whose signal was aborted */
  letGo(call) {
    process.send({ letGo: call });
  }

  /** @param call what is asked for: `{ tool, runId, … }` */
  ask(call) {
    const number = ++this.#asked;
    process.send({ ask: number, call });
    return new Promise((resolve) => this.#waiting.set(number, resolve));
  }
}
