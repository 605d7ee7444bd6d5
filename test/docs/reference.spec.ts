/** The reference tables of the guide against the code they describe: options, routes, actions, settings of the sample. */
import { readFileSync } from 'node:fs';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { RequestMethod, type Type } from '@nestjs/common';
import ts from 'typescript';
import { RUN_PHASES, RUN_STATUSES, statusesOf, type RunPhase } from '../../lib/contracts/run-status.js';
import { RECOVERY_POLICIES } from '../../lib/contracts/policies.js';
import { AgentRunsHttpModule } from '../../lib/http/agent-runs-http.module.js';
import { readPage, readPages, tableUnder } from './doc-page.js';

/** Names in backticks of a table's cell. */
const namesOf = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string);

const firstColumn = (page: string, heading: string) =>
  tableUnder(readPage(page), heading).flatMap(([first]) => namesOf(first));

/** Property names of exported interfaces, without those they inherit. */
function propertiesOf(file: string, ...interfaces: string[]): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
  const found = source.statements
    .filter(ts.isInterfaceDeclaration)
    .filter(({ name }) => interfaces.includes(name.text));
  if (found.length !== interfaces.length) throw new Error(`${file} has not all of ${interfaces.join(', ')}.`);
  return found.flatMap(({ members }) => members.map((member) => (member.name as ts.Identifier).text));
}

/** The texts of a union type. */
function wordsOf(file: string, type: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
  const alias = source.statements.filter(ts.isTypeAliasDeclaration).find(({ name }) => name.text === type);
  if (!alias || !ts.isUnionTypeNode(alias.type)) throw new Error(`${file} has no union ${type}.`);
  return alias.type.types.flatMap((one) =>
    ts.isLiteralTypeNode(one) && ts.isStringLiteral(one.literal) ? [one.literal.text] : [],
  );
}

function routesOf(controller: Type): string[] {
  const routes: string[] = [];
  for (let at = controller.prototype as object; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const name of Object.getOwnPropertyNames(at)) {
      const handler = Object.getOwnPropertyDescriptor(at, name)?.value as object | undefined;
      const path = handler && (Reflect.getMetadata(PATH_METADATA, handler) as string | undefined);
      if (!handler || path === undefined || name === 'constructor') continue;
      const method = Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod;
      routes.push(`${RequestMethod[method]} /${path.replace(/^\//, '')}`);
    }
  }
  return routes;
}

describe('The tables of the guide name exactly what there is:', () => {
  it.each([
    [
      'docs/guide/operating.md',
      'Options of the module',
      'lib/module/agent-runs-module.options.ts',
      ['AgentRunsModuleOptions', 'AgentRunsModuleStructure'],
    ],
    [
      'docs/guide/agents-and-tools.md',
      'Options of an agent',
      'lib/decorators/agent.options.ts',
      ['AgentLimits', 'AgentOptions'],
    ],
    [
      'docs/guide/agents-and-tools.md',
      'Options of a tool',
      'lib/decorators/agent-tool.options.ts',
      ['AgentToolOptions'],
    ],
    ['docs/guide/http.md', 'Options', 'lib/http/agent-runs-http.options.ts', ['AgentRunsHttpOptions']],
  ])('%s, %s', (page, heading, file, interfaces) => {
    expect(firstColumn(page, heading).sort()).toEqual(propertiesOf(file, ...interfaces).sort());
  });

  it('routes', () => {
    const { controllers = [] } = AgentRunsHttpModule.register({ allowUnguarded: true, actorResolver: () => null });
    expect(firstColumn('docs/guide/http.md', 'Routes').sort()).toEqual(
      controllers.flatMap((controller) => routesOf(controller)).sort(),
    );
  });

  it('actions', () => {
    expect(firstColumn('docs/guide/http.md', 'Who may do what').sort()).toEqual(
      wordsOf('lib/http/access/run-authorizer.port.ts', 'RunAction').sort(),
    );
  });

  it('policies, in the README and in the guide', () => {
    const heading = 'What happens to a tool call that was cut in the middle';
    expect(firstColumn('README.md', heading)).toEqual([...RECOVERY_POLICIES]);
    expect(firstColumn('docs/guide/recovery.md', 'Policies')).toEqual([...RECOVERY_POLICIES]);
  });

  it('statuses, under their phases', () => {
    const rows = tableUnder(readPage('docs/guide/steering-and-stopping.md'), 'States');
    expect(rows.map(([phase]) => phase)).toEqual([...RUN_PHASES]);
    for (const [phase, statuses] of rows) {
      const named = namesOf(statuses).filter((name) => RUN_STATUSES.some((status) => status === name));
      expect([phase, named]).toEqual([phase, statusesOf(phase as RunPhase)]);
    }
  });

  it('reasons for attention', () => {
    const documented = firstColumn('docs/guide/recovery.md', 'When a person must decide');
    expect(wordsOf('lib/contracts/run-status.ts', 'AttentionReason').sort()).toEqual(documented.sort());
  });

  it('settings of the sample', () => {
    const settings = readFileSync('sample-app/src/settings/settings.ts', 'utf8');
    const named = readPages().flatMap(
      ({ lines }) => lines.join('\n').match(/\b(?:AGENT_RUNS|DEMO|LEDGER|OPENAI)_[A-Z_]+/g) ?? [],
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !settings.includes(`'${name}'`))).toEqual([]);
  });
});
