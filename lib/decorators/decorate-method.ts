import 'reflect-metadata';
import { SetMetadata } from '@nestjs/common';
import { DECORATED_METHODS_METADATA } from './agent-runs-metadata.tokens.js';

/** Writes metadata on a method as Nest does, and on its class that it did: a decorator above may replace the method, and with it all that was said about it. */
export function decorateMethod(
  token: symbol,
  value: unknown,
): (target: object, key: string | symbol, descriptor: PropertyDescriptor) => void {
  return (target, key, descriptor) => {
    SetMetadata(token, value)(target, key, descriptor);
    const known = (Reflect.getOwnMetadata(DECORATED_METHODS_METADATA, target) ?? []) as (string | symbol)[];
    Reflect.defineMetadata(DECORATED_METHODS_METADATA, [...known, key], target);
  };
}
