interface Patience {
  withinMs?: number;
  /** Between two looks; default one turn of the event loop. */
  everyMs?: number;
}

/** Resolves when the condition holds. @throws Error when it does not come true */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = 'the condition',
  { withinMs = 5_000, everyMs = 0 }: Patience = {},
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${withinMs / 1_000} s`);
    await new Promise<void>((resolve) => (everyMs > 0 ? setTimeout(resolve, everyMs) : setImmediate(resolve)));
  }
}
