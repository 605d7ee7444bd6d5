import { readFileSync } from 'node:fs';

type Condition = { types: string; default: string };

interface Manifest {
  name: string;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: boolean }>;
  exports: Record<string, string | { import: Condition; require: Condition }>;
}

export const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;

/** One entry of `exports` that carries code, e.g. `nestjs-agent-runs/http` from `lib/http.ts`. */
export interface EntryPoint {
  name: string;
  specifier: string;
  esm: Condition;
  cjs: Condition;
}

export const entryPoints: EntryPoint[] = Object.entries(manifest.exports).flatMap(([key, target]) =>
  typeof target === 'string'
    ? []
    : [
        {
          name: key === '.' ? 'index' : key.slice('./'.length),
          specifier: key.replace(/^\./, manifest.name),
          esm: target.import,
          cjs: target.require,
        },
      ],
);
