const TIME = /^[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** Whether a text is a day of the calendar, such as `2026-02-28`. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

/** Whether a text is a day and a time with its offset from UTC (RFC 3339). */
export function isDateTime(text: string): boolean {
  return text.length <= 64 && isDate(text.slice(0, 10)) && TIME.test(text.slice(10));
}

/**
 * A moment from ISO 8601 text: a time with its offset, or a day, which begins at midnight UTC. Undefined for every
 * other text.
 */
export function readInstant(text: string): Date | undefined {
  return isDate(text) || isDateTime(text) ? new Date(text.toUpperCase().replace(' ', 'T')) : undefined;
}
