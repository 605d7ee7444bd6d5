import type { ToolDefinition } from '../contracts/agent-definition.js';
import type { ToolHost } from '../tools/tool-host.js';
import type { BrokenTool } from './registration.explorer.js';

/** A tool as it was found, with what it was made into. */
export interface RegisteredTool {
  /** Null for a built-in tool. */
  host: ToolHost | null;
  definition: ToolDefinition;
}

/** All tools of an application. */
export interface ToolStock {
  tools: RegisteredTool[];
  /** What could not be made into a tool, and was reported. */
  broken: BrokenTool[];
}

export function toolIdentity({ name, version }: { name: string; version: string }): string {
  return `${name}@${version}`;
}
