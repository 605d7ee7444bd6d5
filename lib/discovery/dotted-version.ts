/** Versions of agents and tools: dotted integers, compared numerically ('10' > '9', '1.10' > '1.9'). */
const PATTERN = /^(?:0|[1-9]\d{0,8})(?:\.(?:0|[1-9]\d{0,8})){0,9}$/;

export function isDottedVersion(value: unknown): value is string {
  return typeof value === 'string' && PATTERN.test(value);
}

/** Negative when `a` is lower; 0 for versions of equal rank such as '1' and '1.0'. */
export function compareVersions(a: string, b: string): number {
  const left = a.split('.').map(Number);
  const right = b.split('.').map(Number);
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The one with the highest version. */
export function highestVersion<T>(items: readonly T[], versionOf: (item: T) => string): T | undefined {
  return items.reduce<T | undefined>(
    (best, item) => (best === undefined || compareVersions(versionOf(item), versionOf(best)) > 0 ? item : best),
    undefined,
  );
}
