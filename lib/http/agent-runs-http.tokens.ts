/** Tokens of one registration of the HTTP surface. Private to its module. */
export const ACTOR_RESOLVER = Symbol.for('nestjs-agent-runs:http-actor-resolver');
export const RUN_AUTHORIZER = Symbol.for('nestjs-agent-runs:http-run-authorizer');
export const HTTP_FEATURES = Symbol.for('nestjs-agent-runs:http-features');
export const HTTP_PATH = Symbol.for('nestjs-agent-runs:http-path');
export const HTTP_DOCUMENTATION = Symbol.for('nestjs-agent-runs:http-documentation');
