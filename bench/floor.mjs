// The floor: what the database itself takes for as many single-row commits as a run of ten turns has, with nothing of ours around.
export const COMMITS_PER_RUN = 23;
const BODY = 'x'.repeat(200);

export class Floor {
  #nextId = 0;

  constructor(database) {
    this.database = database;
  }

  /** One insert after the other. @returns ms for the inserts of one run */
  async alone(runs) {
    const inserts = runs * COMMITS_PER_RUN;
    const startedAt = performance.now();
    for (let done = 0; done < inserts; done += 1) await this.database.insertBare((this.#nextId += 1), BODY);
    return (performance.now() - startedAt) / runs;
  }

  /** As many loops at once. @returns ms for the inserts of one run */
  async together(loops, runs) {
    let left = runs * COMMITS_PER_RUN;
    const startedAt = performance.now();
    await this.#inLoops(loops, () => (left -= 1) >= 0);
    return (performance.now() - startedAt) / runs;
  }

  /** As many loops for so long. @returns how many runs the inserts make up */
  async during(loops, ms) {
    const end = performance.now() + ms;
    return (await this.#inLoops(loops, () => performance.now() < end)) / COMMITS_PER_RUN;
  }

  async #inLoops(loops, goesOn) {
    const { database } = this;
    // A loop of its own has a connection of its own, and on SQLite waits for nobody.
    const insert = loops === 1 ? database.insertBare : database.insertBareTogether;
    let inserts = 0;
    const loop = async () => {
      while (goesOn()) {
        await insert((this.#nextId += 1), BODY);
        inserts += 1;
      }
    };
    await Promise.all(Array.from({ length: loops }, loop));
    return inserts;
  }
}
