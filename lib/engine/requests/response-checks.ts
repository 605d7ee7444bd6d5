import type { Question } from '../../contracts/interaction.js';
import { isRecord, type JsonObject, type JsonValue } from '../../contracts/json.js';
import { checkAnswer } from '../values/answer-schema.js';
import { firstProblems } from '../values/plain-text.js';

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
 * Arguments that an approver added although the tool does not describe them and the call did not have them: a schema
 * that says nothing about further properties would let them through to the method unseen, or drop them without a word.
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

/**
 * Answers against their questions: one per question id, a choice where choices were given, fitting the schema where
 * there is one.
 * @returns the first problems; none when every answer fits
 */
export function answerProblems(questions: readonly Question[], answers: JsonObject): string[] {
  const known = new Set(questions.map(({ id }) => id));
  const surplus = Object.keys(answers).filter((id) => !known.has(id));
  const problems = [
    ...surplus.map((id) => `${id} is no question of this ask`),
    ...questions.flatMap((question) =>
      Object.hasOwn(answers, question.id)
        ? problemsOf(question, answers[question.id] as JsonValue)
        : [`${question.id} has no answer`],
    ),
  ];
  return problems.length > 0 ? firstProblems(problems) : [];
}

function problemsOf(question: Question, answer: JsonValue): string[] {
  if (question.schema)
    return checkAnswer(question.schema, answer).problems.map((problem) => `${question.id}: ${problem}`);
  if (typeof answer !== 'string' || answer.trim() === '') return [`${question.id} must be text that is not blank`];
  if (!question.choices || question.allowCustom === true || question.choices.includes(answer)) return [];
  return [`${question.id} must be one of ${question.choices.join(', ')}`];
}
