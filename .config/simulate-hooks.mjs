// Loads TypeScript sources by SWC for `npm run simulate`, and plants a defect on the way where one is asked for.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

let defect = null;

export function initialize(data) {
  defect = data.defect;
}

export async function resolve(specifier, context, next) {
  const isOurs = specifier.startsWith('.') && context.parentURL?.endsWith('.ts');
  return next(isOurs ? specifier.replace(/\.js$/, '.ts') : specifier, context);
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
  const file = fileURLToPath(url);
  const source = plant(file, await readFile(file, 'utf8'));
  const { code } = await transform(source, {
    filename: file,
    swcrc: false,
    sourceMaps: 'inline',
    module: { type: 'es6' },
    jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: true }, keepClassNames: true },
  });
  return { format: 'module', source: code, shortCircuit: true };
}

function plant(file, source) {
  if (defect === null || !file.endsWith(`/lib/${defect.file}`)) return source;
  if (!source.includes(defect.find))
    throw new Error(`The defect ${defect.name} is not where it was: ${defect.file} has no "${defect.find}".`);
  return source.replace(defect.find, () => defect.replace);
}
