/** Answers against their questions: one per question id, a choice where choices were given, fitting the schema where there is one. */
import type { Question } from '../../contracts/interaction.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import { checkAnswer } from '../values/answer-schema.js';
import { firstProblems } from '../values/plain-text.js';

/** @returns the first problems; none when every answer fits */
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
