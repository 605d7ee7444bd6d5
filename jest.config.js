// Sources are ESM TypeScript compiled by SWC; the suites run as ESM (see `node-options` in .npmrc).
// `fast` needs nothing but the sources. The others drive the built package and build it first when it is stale.

const swc = (decoratorMetadata) => [
  '@swc/jest',
  {
    swcrc: false,
    sourceMaps: 'inline',
    module: { type: 'es6' },
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata, useDefineForClassFields: true },
      keepClassNames: true,
    },
  },
];

const base = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  // As in the build: the library runs without emitted decorator metadata, hosts and tests with it.
  transform: { '/lib/.+\\.ts$': swc(false), '\\.ts$': swc(true) },
  moduleNameMapper: {
    '^nestjs-agent-runs$': '<rootDir>/lib/index.ts',
    '^nestjs-agent-runs-contract$': '<rootDir>/packages/contract/lib/index.ts',
    '^nestjs-agent-runs/([a-z-]+)$': '<rootDir>/lib/$1.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/sample-app/dist/'],
};

const built = { ...base, globalSetup: '<rootDir>/.config/jest.built.mjs' };

export default {
  maxWorkers: 2,
  maxConcurrency: 2,
  // A machine that is busy with other things is slow, and that is no fault of the code.
  testTimeout: 30_000,
  projects: [
    {
      ...base,
      displayName: 'fast',
      globalSetup: '<rootDir>/.config/jest.databases.mjs',
      globalTeardown: '<rootDir>/.config/jest.databases-teardown.mjs',
      testMatch: ['<rootDir>/test/**/*.spec.ts'],
      testPathIgnorePatterns: [
        '/node_modules/',
        '<rootDir>/test/(?:package|sample-app|crash|soak|fuzz|simulation/long)/',
      ],
    },
    {
      ...built,
      displayName: 'built',
      testMatch: ['<rootDir>/test/{package,sample-app}/**/*.spec.ts'],
    },
    {
      ...base,
      displayName: 'crash',
      globalSetup: '<rootDir>/.config/jest.crash.mjs',
      globalTeardown: '<rootDir>/.config/jest.databases-teardown.mjs',
      testMatch: ['<rootDir>/test/crash/**/*.spec.ts'],
    },
    {
      ...base,
      displayName: 'soak',
      globalSetup: '<rootDir>/.config/jest.soak.mjs',
      globalTeardown: '<rootDir>/.config/jest.databases-teardown.mjs',
      testMatch: ['<rootDir>/test/soak/{contract,faults,plans}/**/*.spec.ts'],
    },
    {
      ...built,
      displayName: 'fuzz',
      testMatch: ['<rootDir>/test/fuzz/**/*.spec.ts'],
    },
    {
      ...base,
      displayName: 'simulation',
      testMatch: ['<rootDir>/test/simulation/long/**/*.spec.ts'],
    },
    {
      ...base,
      displayName: 'races',
      globalSetup: '<rootDir>/.config/jest.crash.mjs',
      globalTeardown: '<rootDir>/.config/jest.databases-teardown.mjs',
      testMatch: ['<rootDir>/test/soak/races/**/*.spec.ts'],
    },
  ],
};
