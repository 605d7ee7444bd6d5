import { isRecord } from './json.js';
import { type Fields, type Given, type ObjectField, readFields, type Report } from './schema.js';

export interface OptionsSource {
  /** Names the options in messages, e.g. `Agent support (SupportAgent)`. */
  subject: string;
  /** Stands before the name of an option. Default: the subject and a colon. */
  prefix?: string;
  /** Why options of these names will never be there. */
  refused?: Readonly<Record<string, string>>;
}

/**
 * Reads options of a developer: what is wrong becomes sentences, and counts as left out.
 * @param given undefined and null are no options
 */
export function readOptions<F extends Fields>(
  schema: ObjectField<F>,
  given: unknown,
  { subject, prefix = `${subject}: `, refused = {} }: OptionsSource,
  problems: { add(problem: string): void },
): Given<F> {
  if (given === undefined || given === null) return {} as Given<F>;
  if (!isRecord(given)) {
    problems.add(`${subject} is ${formatValue(given)}; it must be an object.`);
    return {} as Given<F>;
  }
  const unknown = new Map<string, { names: string[]; known: readonly string[] }>();
  const report: Report = (problem, path = '', value = undefined, known = undefined) => {
    const at = path.lastIndexOf('.');
    const [parent, name] = [path.slice(0, Math.max(0, at)), path.slice(at + 1)];
    if (!known) {
      const predicate = problem.startsWith('is ') ? `, which ${problem}` : `; it ${problem}`;
      problems.add(`${prefix}${path} is ${formatValue(value)}${predicate}.`);
    } else if (Object.hasOwn(refused, path)) {
      problems.add(`${subject}: "${path}" is not supported. ${refused[path]}`);
    } else {
      const found = unknown.get(parent) ?? { names: [], known };
      unknown.set(parent, { ...found, names: [...found.names, `"${name}"`] });
    }
  };
  const read = readFields(schema, given, report, 'options');
  for (const [parent, { names, known }] of unknown)
    problems.add(
      `${parent === '' ? subject : `${prefix}${parent}`}: unknown option${names.length > 1 ? 's' : ''} ${names.join(', ')}. Known are: ${known.join(', ')}.`,
    );
  return read;
}

/** A value as a message may show it. */
export function formatValue(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint' || value === undefined) return String(value);
  if (typeof value === 'function') return `a function`;
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? typeof value : text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
