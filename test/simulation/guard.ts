// While a history runs, nothing may look at a real clock, set a real timer or draw real chance: each of these throws, and what asked is named by its stack.

const named = (what: string) => (): never => {
  throw new Error(`${what} was used in a simulated history: time and chance come in through ports.`);
};

/** Puts throwing ones in place of the process's own clocks, timers and chance. @returns takes them out again */
export function guardGlobals(): () => void {
  const RealDate = Date;
  class GuardedDate extends RealDate {
    constructor(...given: [] | [string | number | Date]) {
      if (given.length === 0) named('new Date()')();
      super(given[0] as number);
    }

    static override now(): number {
      return named('Date.now')();
    }
  }
  const restore = [
    replace(globalThis, 'Date', GuardedDate),
    ...(['setTimeout', 'setInterval', 'setImmediate'] as const).map((name) => replace(globalThis, name, named(name))),
    replace(Math, 'random', named('Math.random')),
    replace(globalThis, 'AbortSignal', without(AbortSignal, 'AbortSignal', ['timeout'])),
    replace(globalThis, 'performance', without(performance, 'performance', ['now'])),
    replace(globalThis, 'crypto', without(crypto, 'crypto', ['randomUUID', 'getRandomValues'])),
  ];
  // Refusals are part of every history, and nobody reads where they were made.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  return () => {
    Error.stackTraceLimit = stackTraceLimit;
    for (const back of restore) back();
  };
}

/**
 * The object with throwing ones in place of these functions. A stand-in: a test runner may share the object itself with
 * its own code.
 */
function without<T extends object>(object: T, name: string, refused: readonly string[]): T {
  return new Proxy(object, {
    get: (target, property) =>
      refused.includes(String(property))
        ? named(`${name}.${String(property)}`)
        : (Reflect.get(target, property, target) as unknown),
  });
}

function replace<T extends object>(target: T, name: keyof T, value: unknown): () => void {
  const own = Object.getOwnPropertyDescriptor(target, name);
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
  return () => {
    if (own) Object.defineProperty(target, name, own);
    else Reflect.deleteProperty(target, name);
  };
}
