/** A prompt that is the script of the model's answers, as `scriptedModel` plays it with `place: 'prompt'`. */
export function prompt(...steps: object[]): string {
  return `@@${JSON.stringify(steps)}`;
}
