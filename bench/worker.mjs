// The parent's side of `worker-process.mjs` and `cost-process.mjs`.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** One more process of the benchmark. */
export class Worker {
  /** @param directory of the version of this repository that it is to use, where its program can be told */
  static async start(database, settings, { program = 'worker-process.mjs', directory } = {}) {
    const worker = new Worker();
    const told = JSON.stringify({ database: database.inOtherProcess, settings, directory });
    const file = fileURLToPath(new URL(program, import.meta.url));
    worker.child = fork(file, [], { env: { ...process.env, BENCH_WORKER: told } });
    worker.ended = once(worker.child, 'exit');
    await worker.#answer();
    return worker;
  }

  /** Starts runs of ten turns and completes them, so many at once. */
  async complete(runs, atOnce) {
    await this.ask('complete', { runs, atOnce });
  }

  /** Claims nothing until it resumes. */
  async pause() {
    await this.ask('pause');
  }

  async resume() {
    await this.ask('resume');
  }

  async stop() {
    if (this.child.connected) this.child.send({ order: 'stop' });
    await this.ended;
  }

  /** An order of its program. @returns what that answers */
  async ask(order, options = {}) {
    this.child.send({ order, ...options });
    return this.#answer();
  }

  async #answer() {
    const ended = this.ended.then(([code]) => {
      throw new Error(`A process of the benchmark ended with ${code}.`);
    });
    const [answer] = await Promise.race([once(this.child, 'message'), ended]);
    return answer;
  }
}
