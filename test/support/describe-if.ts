// The one place where a suite may be left out: its database server is not there, CI is not asking, and Jest reports it as skipped.

/** `describe`, or a report that the suite was skipped. */
export function describeIf(isThere: boolean): typeof describe | typeof describe.skip {
  // eslint-disable-next-line no-restricted-properties -- under CI the global set-up fails instead
  return isThere ? describe : describe.skip;
}
