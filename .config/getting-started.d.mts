export interface Step {
  kind: 'sh' | 'ts' | 'diff';
  file?: string;
  body: string;
}

export const PAGE: string;
export function stepsOf(page: string, major: '11' | '12'): Step[];
export function installLines(page: string, major: '11' | '12'): string[];
export function applyDiff(text: string, diff: string, major: '11' | '12'): string;
