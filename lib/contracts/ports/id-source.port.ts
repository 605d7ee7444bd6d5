/** Ids and chance for the engine. */
export interface IdSource {
  /** A time-ordered unique id (UUIDv7, RFC 9562). */
  id(): string;
  /** Uniform in [0, 1). */
  random(): number;
}
