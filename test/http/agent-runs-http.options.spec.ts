import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { InvalidConfigurationError } from '../../lib/errors/configuration.errors.js';
import { RunService } from '../../lib/engine/run-service.js';
import { AgentRunsHttpModule, type AgentRunsHttpOptions } from '../../lib/http.js';
import { hostModules } from './http-host.js';

const actorResolver = () => ({ id: 'a' });
const guard = { canActivate: () => true };

function problemsOf(options: unknown): readonly string[] {
  try {
    AgentRunsHttpModule.register(options as AgentRunsHttpOptions);
  } catch (error) {
    if (error instanceof InvalidConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe('AgentRunsHttpModule.register', () => {
  it('refuses routes without guards, unless that is said', () => {
    expect(problemsOf({ actorResolver })).toEqual([expect.stringContaining('no guards')]);
    expect(problemsOf({ actorResolver, guards: [] })).toEqual([expect.stringContaining('no guards')]);
    expect(problemsOf({ actorResolver, guards: [], allowUnguarded: 'true' })).toHaveLength(1);
    expect(problemsOf({ actorResolver, allowUnguarded: true })).toEqual([]);
    expect(problemsOf({ actorResolver, guards: [guard] })).toEqual([]);
  });

  it('refuses routes that do not know who asks', () => {
    for (const nobody of [undefined, null, {}, '', 1]) {
      expect([nobody, problemsOf({ guards: [guard], actorResolver: nobody })]).toEqual([
        nobody,
        [expect.stringContaining('actorResolver')],
      ]);
    }
  });

  it('CFG-1: lists every problem at once', () => {
    expect(
      problemsOf({
        path: '',
        guards: [undefined],
        authorize: 1,
        features: { takeover: 1, magic: true },
        security: 'bearer',
        prefix: 'x',
      }),
    ).toEqual([
      expect.stringContaining('path'),
      expect.stringContaining('guards'),
      expect.stringContaining('authorize'),
      expect.stringContaining('features.takeover'),
      expect.stringContaining('security'),
      expect.stringContaining('"magic"'),
      expect.stringContaining('"prefix"'),
      expect.stringContaining('actorResolver'),
    ]);
    expect(problemsOf(undefined)).toHaveLength(1);
  });

  it('takes names of security schemes and requirements, and nothing else', () => {
    const problems = (security: unknown) => problemsOf({ guards: [guard], actorResolver, security });
    for (const security of [[], ['bearer'], [{ bearer: [], key: [] }, { oauth2: ['runs'] }], [{}]]) {
      expect([security, problems(security)]).toEqual([security, []]);
    }
    for (const security of ['bearer', [''], [null], [1], [{ bearer: 'x' }], [{ bearer: [1] }], { bearer: [] }]) {
      expect([security, problems(security)]).toEqual([security, [expect.stringContaining('security')]]);
    }
  });

  it('makes a controller of its own for each registration', () => {
    const options = { guards: [guard], actorResolver };
    const first = AgentRunsHttpModule.register(options).controllers?.[0];
    const second = AgentRunsHttpModule.register(options).controllers?.[0];
    expect(first).toBeDefined();
    expect(first).not.toBe(second);
  });

  it('CFG-7: is harmless in an application without HTTP', async () => {
    const { engine, imports } = await hostModules({ worker: false });
    @Module({ imports })
    class JobModule {}
    const context = await NestFactory.createApplicationContext(JobModule, { logger: false, abortOnError: false });
    expect(context.get(RunService)).toBe(engine.runs);
    await context.close();
    await engine.stop();
  });
});
