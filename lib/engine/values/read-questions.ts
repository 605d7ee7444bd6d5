import { isBlankText, isIdentifier } from '../../contracts/text.js';
import type { Question } from '../../contracts/interaction.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../contracts/json.js';
import { schemaProblem } from './answer-schema.js';
import { normaliseResult } from './normalise-result.js';
import { firstProblems } from './plain-text.js';

/** Questions as a tool or a model gives them: every problem in words, and nothing but the known fields kept. */
export type ReadQuestions = { ok: true; questions: Question[] } | { ok: false; problems: string[] };

const MAX_BYTES = 1_048_576;
/** Of one ask, and of the choices of one question. */
const MAX_QUESTIONS = 50;
const MAX_CHOICES = 1_000;

/** @param given a list of questions */
export function readQuestions(given: unknown): ReadQuestions {
  const read = normaliseResult(given, { maxBytes: MAX_BYTES });
  if (!read.ok) return { ok: false, problems: [`the questions have no JSON form: ${read.problem} at ${read.path}`] };
  if (!Array.isArray(read.value) || read.value.length === 0)
    return { ok: false, problems: ['questions must be a list of at least one question'] };
  if (read.value.length > MAX_QUESTIONS)
    return { ok: false, problems: [`questions must be at most ${MAX_QUESTIONS}, and are ${read.value.length}`] };
  const problems: string[] = [];
  const questions = read.value.flatMap((one, index) => readQuestion(one, `questions[${index}]`, problems));
  const ids = questions.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) problems.push(`two questions have the id ${twice}`);
  return problems.length > 0 ? { ok: false, problems: firstProblems(problems) } : { ok: true, questions };
}

function readQuestion(value: JsonValue, at: string, problems: string[]): Question[] {
  const before = problems.length;
  const { id, text, choices, allowCustom, schema } = isJsonObject(value) ? value : {};
  if (!isIdentifier(id)) problems.push(`${at}.id must be 1-128 characters of A-Z a-z 0-9 . _ : -`);
  if (typeof text !== 'string' || isBlankText(text)) problems.push(`${at}.text must be text that is not blank`);
  if (choices !== undefined && !areChoices(choices))
    problems.push(`${at}.choices must be a list of 1 to ${MAX_CHOICES} different texts that are not blank`);
  if (allowCustom !== undefined && typeof allowCustom !== 'boolean')
    problems.push(`${at}.allowCustom must be true or false`);
  if (schema !== undefined) {
    if (choices !== undefined) problems.push(`${at} must have choices or a schema, not both`);
    const problem = schemaProblem(schema);
    if (problem !== null) problems.push(`${at}.${problem}`);
  }
  if (problems.length > before) return [];
  return [
    {
      id: id as string,
      text: text as string,
      ...(choices !== undefined && { choices: choices as string[] }),
      ...(allowCustom !== undefined && { allowCustom: allowCustom as boolean }),
      ...(schema !== undefined && { schema: schema as JsonObject }),
    },
  ];
}

function areChoices(value: JsonValue): boolean {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_CHOICES || new Set(value).size !== value.length)
    return false;
  return value.every((choice) => typeof choice === 'string' && !isBlankText(choice));
}
