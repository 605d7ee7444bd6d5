/**
 * Screens what people say to a run, before it is stored: prompts at `start`, steering at `steer`; never again on a resume.
 * A refused prompt leaves a `blocked` run whose model was never called; a refused steering message is not queued.
 */
import type { Actor } from '../actor.js';
import type { Message } from '../message.js';

export interface ScreenedInput {
  kind: 'prompt' | 'steering';
  agent: string;
  version: string;
  runId: string;
  sessionId: string | null;
  messages: readonly Message[];
  /** Who says it; null when the caller gave none. */
  actor: Actor | null;
}

/** Why it is refused, in words that may be shown; or null to let it pass. Anything else, `undefined` and `true` included, refuses. */
export type InputVerdict = { refuse: string } | null;

export interface InputGuardrail {
  /** A throw refuses nothing: it comes out of `start` or `steer` as it is. */
  screen(input: ScreenedInput): InputVerdict | Promise<InputVerdict>;
}
