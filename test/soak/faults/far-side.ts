/** The world outside of the application: it is asked by tools and models of all processes, notes each time it was, and can be told to keep somebody waiting. */
import type { JsonValue } from '../../../lib/contracts/json.js';
import { signal } from '../../support/signal.js';

/** Something that was asked of it. That it was asked is the effect; the answer only tells of it. */
export interface Ask {
  /** Name of the process that asked. */
  by: string;
  /** `model` for a request to the model. */
  tool: string;
  runId: string;
  /** Of the operation: `r1.m1.t0`; of a model request: `m1`. */
  key: string;
  attempt?: number;
  order?: string;
  /** By `performance.now()`. */
  at: number;
}

type Which = Partial<Pick<Ask, 'by' | 'tool' | 'runId' | 'key' | 'order'>>;

/** Keeps those who ask waiting. */
export class Gate {
  readonly asks: Ask[] = [];
  private readonly opened = signal();

  constructor(readonly which: Which) {}

  open(): void {
    this.opened.resolve();
  }

  /** @internal */
  async pass(ask: Ask): Promise<void> {
    this.asks.push(ask);
    await this.opened.promise;
  }
}

export class FarSide {
  readonly asks: Ask[] = [];
  /** Calls whose signal was aborted: whoever heeds it is at work no more. */
  readonly lettingsGo: Ask[] = [];
  private readonly gates: Gate[] = [];
  /** What tools answer; default a receipt that tells the operation. */
  answerTo: (ask: Ask) => JsonValue = ({ tool, key }) => ({ receipt: `${tool} for ${key}` });

  /** From now on these wait until the gate is opened. */
  hold(which: Which): Gate {
    const gate = new Gate(which);
    this.gates.push(gate);
    return gate;
  }

  openAll(): void {
    for (const gate of this.gates) gate.open();
  }

  of(which: Which): Ask[] {
    return this.asks.filter((ask) => matches(ask, which));
  }

  /** Effects by operation, most first: more than one under a key is a doubled effect, unless the policy allows it. */
  effects(tool: string): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { runId, key } of this.of({ tool }))
      counts.set(`${runId}/${key}`, (counts.get(`${runId}/${key}`) ?? 0) + 1);
    return counts;
  }

  /** Operations of a tool that were asked for more than once. */
  doubled(tool: string): string[] {
    return [...this.effects(tool)].filter(([, count]) => count > 1).map(([operation]) => operation);
  }

  async take(ask: Ask): Promise<JsonValue> {
    this.asks.push(ask);
    for (const gate of this.gates.filter(({ which }) => matches(ask, which))) await gate.pass(ask);
    if (ask.tool !== 'find_charge') return this.answerTo(ask);
    const charge = this.of({ tool: 'charge', runId: ask.runId, key: ask.key })[0];
    return charge ? this.answerTo(charge) : null;
  }
}

function matches(ask: Ask, which: Which): boolean {
  return Object.entries(which).every(([name, value]) => ask[name as keyof Which] === value);
}
