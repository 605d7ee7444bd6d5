/**
 * What the engine says to operators. `error`: somebody has to look; `warn`: the engine goes on by itself. Fields carry ids and codes, never content; `stack`
 * is what host code threw, as `thrownStack` tells it.
 */
export interface EngineLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}
