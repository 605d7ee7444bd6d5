/** The page for new users is what `npm run campaign -- getting-started` runs, and what the hosts of `npm run campaign -- hosts` are installed with. */
import { readFileSync } from 'node:fs';
import { applyDiff, installLines, PAGE, stepsOf } from '../../.config/getting-started.mjs';

const page = readFileSync(PAGE, 'utf8');
const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  peerDependencies: Record<string, string>;
};

/** `@nestjs/schedule@6` as name and version. */
const wordsOf = (line: string) =>
  line
    .split(' ')
    .slice(2)
    .map((word) => /^(@?[^@]+)@?(.*)$/.exec(word)!.slice(1) as [string, string]);

const appModule = (suffix: string) => `import { Module } from '@nestjs/common';
import { AppController } from './app.controller${suffix}';

@Module({
  imports: [],
  controllers: [AppController],
})
export class AppModule {}
`;

describe.each(['11', '12'] as const)('Getting started on NestJS %s', (major) => {
  it('installs what the peer ranges allow, and names the major of every package that goes by it', () => {
    const words = installLines(page, major).flatMap(wordsOf);
    expect(words.map(([name]) => name)).toEqual(
      expect.arrayContaining(['nestjs-agent-runs', 'typeorm', 'class-validator', 'class-validator-jsonschema']),
    );
    for (const [name, version] of words.filter(([name]) => name !== 'nestjs-agent-runs')) {
      expect(peerDependencies).toHaveProperty([name]);
      if (version !== '')
        expect([name, peerDependencies[name]]).toEqual([name, expect.stringContaining(`^${version}.`)]);
    }
    const ofNest = words.filter(([name]) => name.startsWith('@nestjs/'));
    expect(ofNest.filter(([, version]) => version === '')).toEqual([]);
  });

  it('creates an application, writes and changes its files, and runs it, in this order', () => {
    expect(stepsOf(page, major).map(({ kind, file }) => file ?? kind)).toEqual([
      'sh',
      'sh',
      'sh',
      'src/support.module.ts',
      'src/app.module.ts',
      'src/main.ts',
      'sh',
    ]);
    expect(stepsOf(page, major)[0]?.body).toContain(`@nestjs/cli@${major} new`);
  });

  it('changes the root module that `nest new` writes', () => {
    const { body } = stepsOf(page, major).find(({ file }) => file === 'src/app.module.ts')!;
    const suffix = major === '12' ? '.js' : '';
    const changed = applyDiff(appModule(suffix), body, major);
    expect(changed).toContain(`\nimport { SupportModule } from './support.module${suffix}';\n`);
    expect(changed).toContain('\n  imports: [SupportModule],\n  controllers: [AppController],\n');
  });

  it('says so when the page and `nest new` have drifted apart', () => {
    expect(() => applyDiff('nothing', ' @Module({\n', major)).toThrow('a line that is not there: @Module({');
  });
});
