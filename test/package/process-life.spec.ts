/** CFG-6: when a process with the built package ends, and when it does not. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeIf } from '../support/describe-if.js';
import { until } from '../support/until.js';

/** A host without an HTTP server. Its tool ignores its signal; what it prints are its milestones. */
const HOST = `
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Agent, AgentRunsModule, AgentTool, RunService } from 'nestjs-agent-runs';
import { scriptedModel } from 'nestjs-agent-runs/testing';

class Tools {
  work() { console.log('at work'); return new Promise((resolve) => setTimeout(resolve, 60_000)); }
}
AgentTool({ name: 'work', description: 'Works.', input: {} })(Tools.prototype, 'work', Object.getOwnPropertyDescriptor(Tools.prototype, 'work'));
class Support {}
Agent({ name: 'support', version: '1', instructions: 'Help.', tools: [Tools] })(Support);
class Host {
  onApplicationBootstrap() { if (process.env.BROKEN) throw new Error('no such queue'); }
}
const models = { default: scriptedModel([{ calls: [{ name: 'work' }] }]) };
Module({
  imports: [AgentRunsModule.forRoot({ models, trigger: 'interval', worker: process.env.WORKER !== 'off' })],
  providers: [Tools, Support],
})(Host);
const app = await NestFactory.createApplicationContext(Host, { logger: false, abortOnError: false }).catch(() => null);
if (app) {
  app.enableShutdownHooks();
  if (process.env.START) await app.get(RunService).start({ agent: 'support', prompt: 'Go' });
}
console.log(app ? 'up' : 'did not boot');
`;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function host(env: Record<string, string> = {}, wrap: readonly string[] = []) {
  const [command, ...args] = [...wrap, process.execPath, '--input-type=module', '-e', HOST];
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'test', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let said = '';
  child.stdout?.on('data', (data: Buffer) => (said += data.toString()));
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  return {
    child,
    ended,
    says: (word: string) => until(() => said.includes(word), word, { withinMs: 20_000, everyMs: 10 }),
  };
}

const childOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
const canBePidOne = spawnSync('unshare', ['--fork', '--pid', '--kill-child', 'true']).status === 0;

describe('A process with the package', () => {
  it('CFG-6: lives as long as its worker, without a server or a timer of its own', async () => {
    const { child, ended, says } = host();
    await says('up');
    await sleep(1_500);
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    expect(await ended).toEqual([null, 'SIGTERM']);
  });

  it('CFG-4: ends by itself where it merely starts a run, and where it did not boot', async () => {
    const starting = host({ WORKER: 'off', START: 'yes' });
    const broken = host({ BROKEN: 'yes' });
    await Promise.all([starting.says('up'), broken.says('did not boot')]);
    expect(await Promise.all([starting.ended, broken.ended])).toEqual([
      [0, null],
      [0, null],
    ]);
  });
});

describeIf(canBePidOne)('The first process of a container', () => {
  it('CFG-6: ends within 10 s of a SIGTERM, with a tool that ignores its signal', async () => {
    const { child, ended, says } = host({ START: 'yes' }, ['unshare', '--fork', '--pid', '--kill-child']);
    await says('at work');
    const begun = performance.now();
    process.kill(childOf(child.pid as number), 'SIGTERM');
    expect(await ended).toEqual([143, null]);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
});

describe('npm start', () => {
  it('CFG-6: passes SIGTERM on to the sample', async () => {
    // A shell that waits for its command dies of the signal, and the command goes on: the script replaces the shell.
    const child = spawn('npm', ['start', '--ignore-scripts'], {
      env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', PORT: '0', DATABASE: ':memory:' },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    let said = '';
    child.stdout.on('data', (data: Buffer) => (said += data.toString()));
    try {
      await until(() => said.includes('listens on'), 'the sample', { withinMs: 25_000, everyMs: 20 });
      const closed = once(child.stdout, 'close');
      child.kill('SIGTERM');
      // The pipe closes when nobody holds it any more: neither npm nor the sample.
      await closed;
      expect(said).toContain('listens on');
    } finally {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
  });
});
