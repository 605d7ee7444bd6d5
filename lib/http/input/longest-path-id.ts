import type { HttpServer } from '@nestjs/common';
import { MAX_IDENTIFIER } from '../../contracts/identifier.js';

/** What Fastify routes unless it is told otherwise. */
const FASTIFY_DEFAULT = 100;

interface FastifyConfig {
  maxParamLength?: number;
  routerOptions?: { maxParamLength?: number };
}

/** Characters of the longest id with which a run or session can be found again: Fastify answers longer path parameters with 414 before any route. */
export function longestPathId(adapter: HttpServer): number {
  const { initialConfig } = (adapter.getInstance() as { initialConfig?: FastifyConfig } | undefined) ?? {};
  if (adapter.getType() !== 'fastify' || initialConfig === undefined) return MAX_IDENTIFIER;
  // Fastify fills the one that is not given with its default.
  const given = [initialConfig.routerOptions?.maxParamLength, initialConfig.maxParamLength].find(
    (length) => length && length !== FASTIFY_DEFAULT,
  );
  return Math.min(given ?? FASTIFY_DEFAULT, MAX_IDENTIFIER);
}
