import type { JsonObject, JsonValue } from '../../contracts/json.js';
import { isRecord } from '../../contracts/schema.js';

/** Keywords by which a schema says more about properties than their list. */
const OPENING = [
  'additionalProperties',
  'unevaluatedProperties',
  'patternProperties',
  '$ref',
  'allOf',
  'anyOf',
  'oneOf',
  'if',
];

/**
 * Arguments that an approver added although the tool does not describe them and the call did not have them: a schema that says nothing about further
 * properties would let them through to the method, where nobody looks for them, or drop them without a word.
 * @param shown the arguments of the call
 */
export function addedArguments(
  schema: JsonValue | undefined,
  edited: JsonValue,
  shown: JsonValue | undefined,
  path = '',
): string[] {
  if (!isRecord(schema)) return [];
  if (Array.isArray(edited)) {
    const before = Array.isArray(shown) ? shown : [];
    return edited.flatMap((item, index) => addedArguments(schema.items, item, before[index], `${path}[${index}]`));
  }
  const { properties } = schema;
  if (!isRecord(edited) || !isRecord(properties)) return [];
  const before: JsonObject = isRecord(shown) ? shown : {};
  const isClosed = !OPENING.some((keyword) => Object.hasOwn(schema, keyword));
  return Object.entries(edited).flatMap(([key, value]) => {
    const here = path === '' ? key : `${path}.${key}`;
    const had = Object.hasOwn(before, key) ? before[key] : undefined;
    if (Object.hasOwn(properties, key)) return addedArguments(properties[key], value, had, here);
    return isClosed && had === undefined ? [`${here} is no argument of this tool`] : [];
  });
}
