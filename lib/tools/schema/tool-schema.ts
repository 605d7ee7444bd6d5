/**
 * What a tool accepts (or returns), whichever library described it. `parse` gives the plain JSON input that is shown to approvers, digested and executed;
 * `revive` turns exactly that input into what the method is handed. Both are pure.
 */
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ParsedArguments } from '../../contracts/ports/tool-caller.port.js';

export interface ToolSchema {
  /** As shown to the model. */
  readonly jsonSchema: JsonObject;
  /** Validates, fills in defaults, coerces. Never throws for bad arguments. */
  parse(args: JsonObject): Promise<ParsedArguments>;
  /**
   * A fresh value for the method, from an input that `parse` gave of these arguments (default: the input), now or before a restart.
   * @throws InvalidToolArgumentsError where the schema neither takes the input back nor makes it of the arguments any more
   */
  revive(input: JsonObject, given?: JsonObject): Promise<unknown>;
  /** The problems of a value; empty when it fits. */
  check(value: JsonValue): string[];
}
