/** A host application that boots the plugin, as source text for `node -e` in ESM and in CommonJS. */
export const hostSource = {
  cjs: (boot: string) => `
    require('reflect-metadata');
    require(${JSON.stringify(boot)})({
      common: require('@nestjs/common'),
      core: require('@nestjs/core'),
      schedule: require('@nestjs/schedule'),
      agentRuns: require('nestjs-agent-runs'),
      version: require('@nestjs/core/package.json').version,
    }).catch((error) => { console.error(error); process.exit(1); });`,
  esm: (boot: string) => `
    import 'reflect-metadata';
    import { createRequire } from 'node:module';
    import * as common from '@nestjs/common';
    import * as core from '@nestjs/core';
    import * as schedule from '@nestjs/schedule';
    import * as agentRuns from 'nestjs-agent-runs';
    const require = createRequire(process.cwd() + '/');
    const { version } = require('@nestjs/core/package.json');
    await require(${JSON.stringify(boot)})({ common, core, schedule, agentRuns, version });`,
};
