import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { ToolContext } from '../contracts/ports/tool-caller.port.js';

/** A method found on a provider. */
export interface ToolHost {
  /** The provider that holds the method, with its module. */
  wrapper: InstanceWrapper;
  /** The provider's instance. */
  instance: object;
  classRef: abstract new (...args: never[]) => unknown;
  methodName: string;
}

export type ToolMethod = (input: unknown, context: ToolContext, ...rest: unknown[]) => unknown;

/** The method as it is now: a host may have replaced it on the instance since boot. */
export function methodOf(host: ToolHost): ToolMethod {
  return (host.instance as Record<string, ToolMethod>)[host.methodName] as ToolMethod;
}

/** For messages: `OrderTools.refund`. */
export function placeOf({ classRef, methodName }: Pick<ToolHost, 'classRef' | 'methodName'>): string {
  return `${classRef.name}.${methodName}`;
}
