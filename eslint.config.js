import eslint from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';
import agentRuns from './.config/eslint-layers.js';

const noDrawers = {
  selector: 'ExportAllDeclaration',
  message: 'EntryPoints spell their exports by hand; there are no barrels.',
};

/** engine/ and contracts/ get time, ids and chance through ports. */
const pureRooms = {
  'no-restricted-globals': [
    'error',
    ...[
      'setTimeout',
      'setInterval',
      'setImmediate',
      'process',
      'Buffer',
      'crypto',
      'performance',
      'fetch',
      'console',
    ].map((name) => ({ name, message: 'This layer has no clock, no randomness and no I/O: take a port.' })),
  ],
  'no-restricted-properties': [
    'error',
    { object: 'Date', property: 'now', message: 'This layer has no clock: take the Clock port.' },
    { object: 'Math', property: 'random', message: 'This layer has no randomness: take a port.' },
  ],
  'no-restricted-syntax': [
    'error',
    noDrawers,
    {
      selector: 'NewExpression[callee.name="Date"][arguments.length=0]',
      message: 'This layer has no clock: take the Clock port.',
    },
  ],
};

export default defineConfig(
  globalIgnores(['**/dist/', 'coverage/', 'data/']),
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommended],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false } }],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      // Off on purpose: its fix turns an injected class into `import type` and erases the metadata Nest needs.
      '@typescript-eslint/consistent-type-imports': 'off',
      // Modules and marker classes are empty, by Nest's own idiom.
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  {
    files: ['lib/**/*.ts'],
    plugins: { 'agent-runs': agentRuns },
    rules: {
      'agent-runs/layers': 'error',
      'no-console': 'error',
      'no-restricted-syntax': ['error', noDrawers],
      'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
    },
  },
  { files: ['lib/{contracts,engine}/**/*.ts'], rules: pureRooms },
  {
    files: ['lib/stores/**/*.ts'],
    ignores: ['lib/stores/codec/**'],
    rules: {
      'no-restricted-properties': [
        'error',
        ...['parse', 'stringify'].map((property) => ({
          object: 'JSON',
          property,
          message: 'Stored payloads pass stores/codec, so that one codec sees all of them.',
        })),
      ],
    },
  },
  { files: ['lib/engine/**/*.ts'], rules: { 'agent-runs/run-status': 'error' } },
  {
    files: ['test/**/*.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        ...['describe', 'it', 'test'].flatMap((object) =>
          ['only', 'skip', 'todo'].map((property) => ({
            object,
            property,
            message: 'A test that does not run proves nothing.',
          })),
        ),
      ],
      'no-restricted-globals': ['error', 'fit', 'fdescribe', 'xit', 'xtest', 'xdescribe'],
      '@typescript-eslint/no-explicit-any': 'off',
    },
  },
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'process',
          'console',
          'URL',
          'setTimeout',
          'clearTimeout',
          'setInterval',
          'clearInterval',
          'setImmediate',
          'fetch',
          'Response',
          'performance',
          'AbortController',
          'AbortSignal',
          'Buffer',
          'TextDecoder',
          'TextEncoder',
          'structuredClone',
          'queueMicrotask',
        ].map((name) => [name, 'readonly']),
      ),
    },
    rules: {
      'no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' },
      ],
    },
  },
);
