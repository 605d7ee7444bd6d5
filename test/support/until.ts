/** Resolves when the condition holds, looked at once per turn of the event loop. @throws Error when it does not come true */
export async function until(condition: () => boolean | Promise<boolean>, what = 'the condition'): Promise<void> {
  const deadline = performance.now() + 5_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within 5 s`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
