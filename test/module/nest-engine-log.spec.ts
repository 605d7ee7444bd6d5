import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { NestEngineLog } from '../../lib/module/nest-engine-log.js';

afterEach(() => jest.restoreAllMocks());

it('a line has its fields on one line, and the stack of what host code threw below it', () => {
  const lines: unknown[][] = [];
  for (const level of ['log', 'error', 'warn', 'debug'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((...given: unknown[]) => void lines.push([level, ...given]));
  }
  const log = new NestEngineLog(['tool']);
  log.warn('a tool failed', { runId: 'r\n1', tool: 'pay', status: undefined, stack: 'TypeError: x\n    at f' });
  log.error('a run failed', { runId: 'r', stack: 'Error: y' });
  log.info('ready');
  log.debug('moved', {});
  expect(lines).toEqual([
    ['warn', 'a tool failed (runId=r 1 tool=[redacted])\nTypeError: x\n    at f'],
    ['error', 'a run failed (runId=r)\nError: y'],
    ['log', 'ready'],
    ['debug', 'moved'],
  ]);
});
