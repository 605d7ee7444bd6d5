import type { Interaction } from './interaction.js';

/**
 * Text by which the asks of one run sort in call order: by turn, by place of the call in its reply (the eleventh after the tenth, not after the second), by
 * ordinal. Made for comparison byte by byte, as databases do it with an index: each number is led by how many digits it has.
 */
export function askPlace({ operationKey, ordinal }: Pick<Interaction, 'operationKey' | 'ordinal'>): string {
  // `#` comes before everything a key may contain, so that no key sorts between another one and its ordinals.
  return sortable(`${operationKey}#${ordinal}`);
}

function sortable(text: string): string {
  return text.replaceAll(/\d+/g, (digits) => `${digits.length.toString(36)}${digits}`);
}
