// Lets parallel calls of a fresh run end in a fixed order, so that commit number 7 is the same commit each time it is looked at.
export class ToldEvents {
  /** @param order what this process was told to do last */
  constructor(order) {
    this.order = order;
    this.told = new Set();
    this.waiting = [];
  }

  onEvent({ runId, type, details }) {
    this.told.add(`${runId} ${type} ${details.key}`);
    this.waiting = this.waiting.filter(({ event, resolve }) => !this.told.has(event) || resolve());
  }

  /** Resolves when this process was told so; at once for a run of an earlier process, where the event may be history. */
  async after(type, operationId) {
    const [runId, key] = operationId.split('/');
    const event = `${runId} ${type} ${key}`;
    if (!this.order().fresh || this.told.has(event)) return;
    await new Promise((resolve) => this.waiting.push({ event, resolve: () => void resolve() }));
  }
}
