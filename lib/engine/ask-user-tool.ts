import type { JsonObject } from '../contracts/json.js';
import type { ToolDefinition } from '../contracts/agent-definition.js';
import { readQuestions } from './values/read-questions.js';

/** The name under which an agent gets the built-in tool: `tools: [ASK_USER, OrderTools]`. */
export const ASK_USER = 'ask_user';

const INPUT_SCHEMA: JsonObject = {
  type: 'object',
  required: ['questions'],
  properties: {
    questions: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['id', 'text'],
        properties: {
          id: {
            type: 'string',
            description: 'Names the answer: letters, digits and . _ : -, different for each question.',
          },
          text: { type: 'string', description: 'The question, in words a person understands.' },
          choices: { type: 'array', items: { type: 'string' }, minItems: 1, description: 'Answers to choose from.' },
          allowCustom: { type: 'boolean', description: 'With choices: whether another answer is welcome.' },
          schema: {
            type: 'object',
            description:
              'JSON Schema of the answer, where it is no plain text: type, enum, const, required, properties, items, format and limits; no pattern and no $ref.',
          },
        },
      },
    },
  },
};

/**
 * The built-in tool by which a model asks people. It has no method: the call itself is the question, and the answers
 * are its result. An agent has it by naming it among its tools.
 */
export function askUserTool(): ToolDefinition {
  return {
    name: ASK_USER,
    version: '1',
    description:
      'Asks the people you work for, and waits for their answers. Use it when you cannot go on without something only they know; ask everything at once.',
    inputSchema: INPUT_SCHEMA,
    outputSchema: null,
    recovery: 'safe',
    approval: 'none',
    timeoutMs: null,
    transactionTimeoutMs: 5_000,
    asksUser: true,
    caller: {
      parse: (args) => {
        const read = readQuestions(args['questions']);
        return Promise.resolve(
          read.ok ? { ok: true, input: { questions: read.questions as unknown as JsonObject[] } } : read,
        );
      },
      approval: () => Promise.resolve(null),
      call: () => Promise.reject(new Error(`${ASK_USER} is answered by people; it has no method to call.`)),
      checkOutput: () => [],
    },
  };
}
