// What no crash of the application takes back: a file that is only appended to. A line handed to the kernel outlives the process that wrote it.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export class OutsideWorld {
  /** @param life which process of the cycle this is, from 1 */
  constructor(file, life) {
    this.file = file;
    this.life = life;
  }

  note(fact) {
    appendFileSync(this.file, `${JSON.stringify({ life: this.life, ...fact })}\n`);
  }

  /** A tool's method was entered. */
  entered(tool, { operationId, attempt }) {
    this.note({ fact: 'entered', tool, operationId, attempt });
  }

  /** The far side did what it was asked to. @returns what it answers */
  effect(tool, { operationId }, input = {}) {
    this.note({ fact: 'effect', tool, operationId, input });
    return receiptFor(tool, operationId);
  }

  /** What the far side would answer about an earlier effect; null when there was none. */
  find(tool, operationId) {
    return this.facts().some((one) => one.fact === 'effect' && one.tool === tool && one.operationId === operationId)
      ? receiptFor(tool, operationId)
      : null;
  }

  facts() {
    if (!existsSync(this.file)) return [];
    return readFileSync(this.file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }
}

function receiptFor(tool, operationId) {
  return { receipt: `${tool} for ${operationId.slice(operationId.indexOf('/') + 1)}` };
}
