/** The orders of lists, by bytes: the same on every store. */
import { interactionPlace, type Interaction } from '../../contracts/interaction.js';
import type { Places } from '../../contracts/page-cursor.js';

type RunPlace = Places['runs'];
type AskPlace = Pick<Interaction, 'createdAt' | 'runId' | 'operationKey' | 'ordinal' | 'id'> | Places['interactions'];

/** Older before newer, those of one moment by id. */
export function byAge(a: RunPlace, b: RunPlace): number {
  return a.createdAt - b.createdAt || byText(a.id, b.id);
}

/** Older before newer, those of one moment by run, within a run in call order. */
export function byAsk(a: AskPlace, b: AskPlace): number {
  return a.createdAt - b.createdAt || byText(a.runId, b.runId) || byText(placeIn(a), placeIn(b)) || byText(a.id, b.id);
}

function placeIn(ask: AskPlace): string {
  return 'place' in ask ? ask.place : interactionPlace(ask);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
