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
    const loop = async () => {
      while (left > 0) {
        left -= 1;
        await this.database.insertBareTogether((this.#nextId += 1), BODY);
      }
    };
    await Promise.all(Array.from({ length: loops }, loop));
    return (performance.now() - startedAt) / runs;
  }
}
