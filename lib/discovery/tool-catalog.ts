import type { ToolDefinition } from '../contracts/agent-definition.js';
import type { ToolHost } from '../tools/tool-host.js';
import type { BrokenTool } from './registration.explorer.js';
import type { ToolReference } from '../decorators/agent.options.js';
import { highestVersion } from './dotted-version.js';
import { formatValue } from '../contracts/read-options.js';
import type { ProblemList } from './problem-list.js';

/** A tool as it was found, with what it was made into. */
export interface RegisteredTool {
  /** Null for a built-in tool. */
  host: ToolHost | null;
  definition: ToolDefinition;
}

/** All tools of an application. */
export interface ToolCatalog {
  tools: RegisteredTool[];
  /** What could not be made into a tool, and was reported. */
  broken: BrokenTool[];
}

export function toolIdentity({ name, version }: { name: string; version: string }): string {
  return `${name}@${version}`;
}

/** Which tools an agent means: by class, by name (the highest version) or by `name@version`. */
export function selectTools(
  references: readonly ToolReference[],
  { tools: registered, broken }: ToolCatalog,
  what: string,
  problems: ProblemList,
): RegisteredTool[] {
  const selected = new Set<RegisteredTool>();
  for (const reference of references) {
    const tools = typeof reference === 'string' ? byName(reference, registered) : byClass(reference, registered);
    if (tools.length === 0 && !isBroken(reference, broken)) problems.add(missing(reference, registered, what));
    for (const tool of tools) selected.add(tool);
  }
  const names = new Map<string, RegisteredTool>();
  for (const tool of selected) {
    const twin = names.get(tool.definition.name);
    if (twin) {
      problems.add(
        `${what} has ${toolIdentity(twin.definition)} and ${toolIdentity(tool.definition)}. A model knows tools by name only: choose one version.`,
      );
    }
    names.set(tool.definition.name, tool);
  }
  return [...selected];
}

function isBroken(reference: ToolReference, broken: ToolCatalog['broken']): boolean {
  return broken.some(({ name, classRef }) =>
    typeof reference === 'string' ? name === reference.split('@')[0] : classRef === reference,
  );
}

function byName(reference: string, registered: readonly RegisteredTool[]): RegisteredTool[] {
  const exact = registered.filter(({ definition }) => toolIdentity(definition) === reference);
  if (exact.length > 0) return exact.slice(0, 1);
  return highestOf(registered.filter(({ definition }) => definition.name === reference));
}

function byClass(reference: ToolReference, registered: readonly RegisteredTool[]): RegisteredTool[] {
  const own = registered.filter(
    ({ host }) =>
      host !== null &&
      (host.classRef === reference ||
        host.wrapper.token === reference ||
        (typeof reference === 'function' && host.classRef.prototype instanceof reference)),
  );
  const names = new Set(own.map(({ definition }) => definition.name));
  return [...names].flatMap((name) => highestOf(own.filter(({ definition }) => definition.name === name)));
}

function highestOf(tools: readonly RegisteredTool[]): RegisteredTool[] {
  const highest = highestVersion(tools, ({ definition }) => definition.version);
  return highest === undefined ? [] : [highest];
}

function missing(reference: ToolReference, registered: readonly RegisteredTool[], what: string): string {
  const existing = registered.map(({ definition }) => toolIdentity(definition)).join(', ') || 'none';
  if (typeof reference === 'string') {
    return `${what} names the tool '${reference}', which does not exist. Registered tools: ${existing}.`;
  }
  if (typeof reference === 'function' && reference.prototype !== undefined) {
    return `${what} names the class ${reference.name}, but no provider of it has @AgentTool methods. Add it to the providers of a module. Registered tools: ${existing}.`;
  }
  return `${what}: tools contains ${formatValue(reference)}. Give classes, names or 'name@version'; lists made at run time are not supported.`;
}
