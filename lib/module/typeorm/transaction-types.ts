/** The same types as in the main door, with TypeORM's `EntityManager` where that says `unknown`: the main door imports no TypeORM. */
import type { EntityManager } from 'typeorm';
import type { ToolContext as OpaqueToolContext } from '../../contracts/ports/tool-caller.port.js';
import type { StartContext as OpaqueStartContext } from '../../contracts/run-requests.js';

/** The context of a `transactional` tool. */
export interface ToolContext extends OpaqueToolContext {
  /** Writes through it commit together with the record of the call, or not at all. Throws once the method has settled. */
  manager: EntityManager;
}

export interface StartContext extends OpaqueStartContext {
  /** The host's open transaction: the run exists only if it commits. */
  transaction?: EntityManager;
}
