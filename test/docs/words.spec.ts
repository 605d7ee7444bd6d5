/** One word for each thing (docs/glossary.md): the words of earlier versions do not come back. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const words = JSON.parse(readFileSync('.config/words.json', 'utf8')) as Record<string, string>;
const OLD = new RegExp(`(?<![\\w-])(?:${Object.keys(words).join('|')})(?![\\w-])`, 'g');

describe('the words of the code and its pages', () => {
  it('are those of the glossary', () => {
    const roots = ['lib', 'docs', 'test', 'sample-app', 'packages', 'bench', 'README.md', 'CONTRIBUTING.md'];
    const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', ...roots], { encoding: 'utf8' });
    const found = files
      .split('\n')
      .filter((file) => /\.(?:ts|mts|mjs|md)$/.test(file))
      .flatMap((file) =>
        readFileSync(file, 'utf8')
          .split('\n')
          .flatMap((line, index) =>
            [...line.matchAll(OLD)].map(([word]) => `${file}:${index + 1} says ${word}: say ${words[word]}`),
          ),
      );
    expect(found).toEqual([]);
  });
});
