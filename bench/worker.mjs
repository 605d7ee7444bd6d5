// The parent's side of `worker-process.mjs`.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('worker-process.mjs', import.meta.url));

/** One more process of the benchmark. */
export class Worker {
  static async start(database, settings) {
    const worker = new Worker();
    const env = { ...process.env, BENCH_WORKER: JSON.stringify({ database: database.inOtherProcess, settings }) };
    worker.child = fork(PROGRAM, [], { env });
    worker.ended = once(worker.child, 'exit');
    await worker.#answer();
    return worker;
  }

  /** Starts runs of ten turns and completes them, so many at once. */
  async complete(runs, atOnce) {
    await this.#obey({ order: 'complete', runs, atOnce });
  }

  /** Claims nothing until it resumes. */
  async pause() {
    await this.#obey({ order: 'pause' });
  }

  async resume() {
    await this.#obey({ order: 'resume' });
  }

  async stop() {
    if (this.child.connected) this.child.send({ order: 'stop' });
    await this.ended;
  }

  async #obey(order) {
    this.child.send(order);
    await this.#answer();
  }

  async #answer() {
    const ended = this.ended.then(([code]) => {
      throw new Error(`A process of the benchmark ended with ${code}.`);
    });
    await Promise.race([once(this.child, 'message'), ended]);
  }
}
