/**
 * The bodies and queries of the routes, from unverified values to what `RunService` is given. What a field may be is written here once;
 * the engine checks again what matters to it.
 */
import { isIdentifier, MAX_IDENTIFIER } from '../../contracts/identifier.js';
import type { JsonValue } from '../../contracts/json.js';
import { metadataProblems } from '../../contracts/run-metadata.js';
import type { RunMetadata } from '../../contracts/run.js';
import type { EventOptions, PromptMessage, StartOptions } from '../../contracts/run-requests.js';
import { IDENTIFIER, MAX_NAME, MAX_NOTE } from './field-rules.js';
import { given } from '../../contracts/given-fields.js';
import { RequestFields, invalidRequest } from './request-fields.js';

const MAX_WAIT_SECONDS = 60;
const MAX_EVENTS = 500;
const MESSAGE_ROLES = ['user', 'assistant', 'system', 'tool'];

const VERSION = { test: /^\d{1,9}(\.\d{1,9}){0,9}$/, words: 'must be whole numbers with dots, like 2 or 1.10' };

/** An id of a path. @throws InvalidRequestError */
export function readPathId(name: string, value: unknown): string {
  if (isIdentifier(value)) return value;
  throw invalidRequest([{ field: name, problem: IDENTIFIER.words }]);
}

/** @param maxPathId characters of the longest id that the server routes */
export function readStart(body: unknown, maxPathId = MAX_IDENTIFIER): StartOptions {
  return RequestFields.read(body, (fields) => {
    const pathId = (name: 'runId' | 'sessionId') => {
      const id = fields.text(name, { pattern: IDENTIFIER });
      if (id !== undefined && id.length > maxPathId)
        fields.report(
          name,
          `must have at most ${maxPathId} characters, for this server finds no longer one in a path (maxParamLength)`,
        );
      return id;
    };
    const prompt = fields.text('prompt', { notBlank: true });
    const messages = readMessages(fields);
    if (fields.has('prompt') === fields.has('messages')) {
      fields.report('prompt', 'is required, or messages: exactly one of the two');
    }
    return given({
      agent: fields.text('agent', { required: true, notBlank: true, maxLength: MAX_NAME }) as string,
      version: fields.text('version', { pattern: VERSION }),
      prompt,
      messages,
      sessionId: pathId('sessionId'),
      requestId: fields.text('requestId', { pattern: IDENTIFIER }),
      runId: pathId('runId'),
      enqueue: fields.flag('enqueue'),
      budget: readBudget(fields),
      metadata: readMetadata(fields),
    });
  });
}

/** `?wait=` of a start, in seconds. */
export function readWait(query: unknown): number | undefined {
  return RequestFields.read(query, (fields) => fields.digits('wait', 0, MAX_WAIT_SECONDS));
}

export function readEventQuery(query: unknown): EventOptions {
  return RequestFields.read(query, (fields) =>
    given({
      after: fields.digits('after', 0, Number.MAX_SAFE_INTEGER),
      limit: fields.digits('limit', 1, MAX_EVENTS),
      projection: fields.choice('projection', ['full', 'lifecycle'] as const),
    }),
  );
}

export interface ResumeBody {
  budget?: { maxTotalTokens: number };
  allowRunningTakeover?: boolean;
  reason?: string;
}

/** A takeover needs a reason: `reason`, or `confirmation: { reason }`. Who says so is the actor, never the body. */
export function readResume(body: unknown): ResumeBody {
  return RequestFields.read(body, (fields) => {
    const confirmation = fields.object('confirmation', (inner) =>
      inner.text('reason', { required: true, notBlank: true, maxLength: MAX_NOTE }),
    );
    const read = given({
      budget: readBudget(fields),
      allowRunningTakeover: fields.flag('allowRunningTakeover'),
      reason: fields.text('reason', { notBlank: true, maxLength: MAX_NOTE }) ?? confirmation,
    });
    if (read.allowRunningTakeover && !fields.has('reason') && !fields.has('confirmation')) {
      fields.report('reason', 'is required to take a run from its owner');
    }
    return read;
  });
}

export function readReason(body: unknown): { reason?: string } {
  return RequestFields.read(body, (fields) =>
    given({ reason: fields.text('reason', { notBlank: true, maxLength: MAX_NOTE }) }),
  );
}

export type ResolutionBody = { key: string; note?: string } & (
  { output: JsonValue } | { error: { message: string } } | { notHappened: true }
);

export function readResolution(body: unknown): ResolutionBody {
  return RequestFields.read<ResolutionBody>(body, (fields) => {
    const key = fields.text('key', { required: true, notBlank: true, maxLength: 400 }) as string;
    const note = fields.text('note', { notBlank: true, maxLength: MAX_NOTE });
    const output = fields.any('output') as JsonValue;
    const error = fields.object('error', (inner) => ({
      message: inner.text('message', { required: true, notBlank: true, maxLength: MAX_NOTE }) as string,
    }));
    const notHappened = fields.any('notHappened');
    if (notHappened !== undefined && notHappened !== true) fields.report('notHappened', 'must be true, or absent');
    const ways = ['output', 'error', 'notHappened'].filter((name) => fields.has(name));
    if (ways.length !== 1) fields.report('output', 'is required, or error, or notHappened: exactly one of the three');
    const named = given({ key, note });
    if (error) return { ...named, error };
    return notHappened === true ? { ...named, notHappened } : { ...named, output };
  });
}

function readMessages(fields: RequestFields): StartOptions['messages'] {
  const value = fields.any('messages');
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || value.length === 0) {
    fields.report('messages', 'must be a list of at least one message');
    return undefined;
  }
  value.forEach((message: unknown, index) => {
    const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown };
    if (!MESSAGE_ROLES.includes(role as string)) {
      fields.report(`messages[${index}].role`, `must be one of ${MESSAGE_ROLES.join(', ')}`);
    }
    if (typeof content !== 'string' && !Array.isArray(content)) {
      fields.report(`messages[${index}].content`, 'must be text or a list of parts');
    }
  });
  return value as PromptMessage[];
}

function readBudget(fields: RequestFields): { maxTotalTokens: number } | undefined {
  return fields.object('budget', (budget) => ({
    maxTotalTokens: budget.positiveInteger('maxTotalTokens', true) as number,
  }));
}

function readMetadata(fields: RequestFields): RunMetadata | undefined {
  const metadata = fields.json('metadata');
  if (!metadata) return undefined;
  for (const { field, problem } of metadataProblems(metadata)) fields.report(field, problem);
  return metadata as RunMetadata;
}
