import 'reflect-metadata';

/**
 * Says of every method of a class that its parameters may be anything, as the compiler would where it emits metadata. The host's global pipes then leave
 * bodies and queries alone, and its `ValidationPipe` has nothing to warn about: Nest from 12.5 on logs a line for each route without types.
 */
export function UntypedParameters(): ClassDecorator {
  return ({ prototype }) => {
    const methods = prototype as unknown as Record<string, unknown>;
    for (const name of Object.getOwnPropertyNames(methods)) {
      const method = methods[name];
      if (name === 'constructor' || typeof method !== 'function') continue;
      const types = Array.from({ length: method.length }, () => Object);
      Reflect.defineMetadata('design:paramtypes', types, methods, name);
    }
  };
}
