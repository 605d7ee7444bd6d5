import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import 'reflect-metadata';
import { CUSTOM_ROUTE_ARGS_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
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

/** Where the merged parameter metadata is kept for Nest's context creator, which takes only text. */
export const TOOL_ARGUMENTS_METADATA = 'nestjs-agent-runs:arguments';

/** `RouteParamtypes.BODY` and `RpcParamtype.PAYLOAD`: as such pipes see the input, so that a ValidationPipe judges it. */
const INPUT = 3;

interface ParameterMetadata {
  index: number;
  data?: unknown;
  pipes: unknown[];
}

export interface ToolParameters {
  contextIndex: number;
  /** Pipes of single parameters. */
  pipes: unknown[];
  /** Whether there are parameter decorators at all. */
  decorated: boolean;
  /** Decorators that have no meaning outside an HTTP request: the indexes of their parameters. */
  foreign: number[];
}

/**
 * Which parameter of a tool method gets what. Without parameter decorators it is `(input, context)`. `@Body()` or
 * `@Payload()` marks the input, decorators made by `createParamDecorator` bring their own value; input and context
 * take the first places left.
 *
 * Reads the host's parameter decorators and writes the merged metadata next to them.
 */
export function prepareParameters({ instance, classRef, methodName }: ToolHost): ToolParameters {
  const owners = new Set([classRef, instance.constructor, (Object.getPrototypeOf(instance) as object).constructor]);
  const own = [...owners]
    .map((owner) => Reflect.getMetadata(ROUTE_ARGS_METADATA, owner, methodName) as Record<string, ParameterMetadata>)
    .find((metadata) => metadata !== undefined);
  const entries = Object.entries(own ?? {});
  const isInput = (key: string): boolean => Number(key.split(':')[0]) === INPUT;
  const isCustom = (key: string): boolean => key.includes(CUSTOM_ROUTE_ARGS_METADATA);

  const taken = new Set(entries.map(([, { index }]) => index));
  const nextFree = (): number => {
    let index = 0;
    while (taken.has(index)) index++;
    taken.add(index);
    return index;
  };
  const merged: Record<string, ParameterMetadata> = Object.fromEntries(
    entries.filter(([key]) => isInput(key) || isCustom(key)),
  );
  if (!entries.some(([key]) => isInput(key))) {
    const index = nextFree();
    merged[`${INPUT}:${index}`] = { index, data: undefined, pipes: [] };
  }
  const contextIndex = nextFree();
  for (const owner of owners) Reflect.defineMetadata(TOOL_ARGUMENTS_METADATA, merged, owner, methodName);
  return {
    contextIndex,
    decorated: entries.length > 0,
    pipes: entries.flatMap(([, { pipes }]) => pipes ?? []),
    foreign: entries.filter(([key]) => !isInput(key) && !isCustom(key)).map(([, { index }]) => index),
  };
}

/** Nest asks it for the value of a parameter; `args` are those of the pipeline: `[input, context]`. */
export const TOOL_PARAMETERS_FACTORY = {
  exchangeKeyForValue(type: number, data: unknown, args: unknown[]): unknown {
    if (type !== INPUT) return undefined;
    const input = args[0] as Record<string, unknown>;
    return typeof data === 'string' && data !== '' ? input[data] : input;
  },
};
