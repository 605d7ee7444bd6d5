/**
 * Canonical text of a JSON value by RFC 8785. Property names are in the order of their UTF-16 code units (3.2.3); numbers and texts are as ECMAScript writes
 * them (3.2.2), which is what `JSON.stringify` does. A property that is undefined is left out.
 *
 * A lone surrogate, which the RFC leaves out, is written as its escape: such texts differ from each other and from U+FFFD.
 * @throws Error for a number that is not finite: it is no JSON
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return String(value);
    throw new Error(`${value} is no JSON`);
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  let text = '';
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      if (index > 0) text += ',';
      text += canonicalJson(value[index]);
    }
    return `[${text}]`;
  }
  for (const name of sorted(Object.keys(value))) {
    const property = (value as Record<string, unknown>)[name];
    if (property === undefined) continue;
    if (text !== '') text += ',';
    text += `${JSON.stringify(name)}:${canonicalJson(property)}`;
  }
  return `{${text}}`;
}

/** In place. Most objects have few names, for which `sort` takes longer than all the rest. */
function sorted(names: string[]): string[] {
  if (names.length > 16) return names.sort();
  for (let index = 1; index < names.length; index += 1) {
    const name = names[index] as string;
    let place = index;
    for (; place > 0 && (names[place - 1] as string) > name; place -= 1) names[place] = names[place - 1] as string;
    names[place] = name;
  }
  return names;
}
