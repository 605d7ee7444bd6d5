import {
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  ForbiddenException,
  type INestApplicationContext,
  Inject,
  Injectable,
  Logger,
  type NestInterceptor,
  type PipeTransform,
  type Provider,
  Scope,
  SetMetadata,
  type Type,
  UnauthorizedException,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  createParamDecorator,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, Reflector } from '@nestjs/core';
import { jest } from '@jest/globals';
import { IsInt } from 'class-validator';
import { catchError, map, type Observable, of, retry, tap } from 'rxjs';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { EnteredTransaction, ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import { AgentTool } from '../../lib/decorators/tool.decorators.js';
import type { AgentToolOptions } from '../../lib/decorators/agent-tool.options.js';
import { signal } from '../support/signal.js';
import { agentWith, bootHost, type Called, callTool, quiet, toolOf } from '../support/nest-host.js';

const ANY = { type: 'object' };
let told: string[] = [];
let apps: INestApplicationContext[] = [];

beforeEach(() => {
  told = [];
});
afterEach(async () => {
  await Promise.all(apps.map((app) => app.close()));
  apps = [];
});

const tool = (options: Partial<AgentToolOptions> = {}) =>
  AgentTool({ name: 't', description: 'Does it.', input: ANY, ...options }) as MethodDecorator;

/** Boots a host with the tool class and calls its tool `t`. */
async function call(
  tools: Type,
  {
    input = { a: 1 },
    providers = [],
    globalEnhancers = false,
    provide = tools,
    ...how
  }: {
    input?: JsonObject;
    providers?: Provider[];
    globalEnhancers?: boolean;
    provide?: Provider;
  } & Parameters<typeof callTool>[2] = {},
): Promise<Called> {
  const app = await bootHost({
    providers: [provide, ...providers, agentWith(['t'])],
    runs: { ...quiet, globalEnhancers },
  });
  apps.push(app);
  return callTool(toolOf(app, 't'), input, how);
}

@Injectable()
class Permissions {
  readonly allowed = new Set(['alice']);
}

@Injectable()
class ActorGuard implements CanActivate {
  constructor(@Inject(Permissions) private readonly permissions: Permissions) {}

  canActivate(context: ExecutionContext): boolean {
    const [input, { actor }] = context.getArgs<[JsonObject, ToolContext]>();
    told.push(`guard ${context.getType<string>()} ${context.getHandler().name} ${JSON.stringify(input)}`);
    return this.permissions.allowed.has(actor?.id ?? '');
  }
}

class NameInterceptor implements NestInterceptor {
  constructor(private readonly name: string) {}

  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    told.push(`${this.name} before`);
    return next.handle().pipe(tap(() => told.push(`${this.name} after`)));
  }
}

class TellingPipe implements PipeTransform {
  transform(value: unknown): unknown {
    told.push('pipe');
    return { ...(value as object), piped: true };
  }
}

describe('The way of a tool call through the host (CFG-9)', () => {
  it('CFG-9: guards, interceptors, pipes, then the entry, then the method, then interceptors again', async () => {
    @Injectable()
    @UseInterceptors(new NameInterceptor('class'))
    class Tools {
      @tool()
      @UseGuards(ActorGuard)
      @UseInterceptors(new NameInterceptor('method'))
      @UsePipes(TellingPipe)
      run(input: JsonObject, context: ToolContext & EnteredTransaction) {
        told.push(`method ${JSON.stringify(input)} ${String(context.manager)}`);
        return 'done';
      }
    }
    const called = await call(Tools, {
      providers: [Permissions],
      onEnter: async () => {
        told.push('entry');
        return { manager: 'the transaction' };
      },
    });
    expect(called).toEqual({ entered: 1, value: 'done' });
    expect(told).toEqual([
      'guard agent run {"a":1}',
      'class before',
      'method before',
      'pipe',
      'entry',
      'method {"a":1,"piped":true} the transaction',
      'method after',
      'class after',
    ]);
  });

  it('CFG-9: a guard that says no is a denied call, and the method is not entered', async () => {
    @Injectable()
    class Tools {
      @tool()
      @UseGuards(ActorGuard)
      run() {
        return 'done';
      }
    }
    const called = await call(Tools, { providers: [Permissions], context: { actor: { id: 'mallory' } } });
    expect(called.entered).toBe(0);
    expect(called.error).toMatchObject({ code: 'TOOL_DENIED', message: 'Forbidden resource' });
  });

  it.each([
    ['an HttpException', new UnauthorizedException('Who are you?'), 'Who are you?'],
    ['its own error', new Error('connect ECONNREFUSED postgres://user:secret@db'), 'A guard refused this call.'],
  ])('CFG-9: a guard that throws %s is a denied call whose text leaks nothing', async (_what, thrown, message) => {
    const guard: CanActivate = {
      canActivate() {
        throw thrown;
      },
    };
    @Injectable()
    class Tools {
      @tool()
      @UseGuards(guard)
      run() {
        return 'done';
      }
    }
    const called = await call(Tools);
    expect(called).toMatchObject({ entered: 0, error: { code: 'TOOL_DENIED', message, cause: thrown } });
  });

  it('CFG-9: a ForbiddenException of the method itself is an error of the tool, not a denial', async () => {
    @Injectable()
    class Tools {
      @tool()
      run() {
        throw new ForbiddenException('the bank says no');
      }
    }
    const called = await call(Tools);
    expect(called.entered).toBe(1);
    expect(called.error).toBeInstanceOf(ForbiddenException);
  });

  it('MOD-4: a pipe that refuses is invalid arguments, and the method is not entered', async () => {
    class Amount {
      @IsInt() cents!: number;
    }
    @Injectable()
    class Tools {
      @tool()
      @UsePipes(new ValidationPipe({ expectedType: Amount }))
      run() {
        return 'done';
      }
    }
    const called = await call(Tools, { input: { cents: 'many' } });
    expect(called).toMatchObject({
      entered: 0,
      error: { code: 'INVALID_ARGUMENTS', message: 'cents must be an integer number' },
    });
  });

  it('a pipe of the method sees the input and never the context', async () => {
    const values: unknown[] = [];
    const pipe: PipeTransform = {
      transform(value: unknown) {
        values.push(value);
        return value;
      },
    };
    @Injectable()
    class Tools {
      @tool()
      @UsePipes(pipe)
      run(_input: JsonObject, context: ToolContext) {
        return context.operationId;
      }
    }
    expect(await call(Tools)).toMatchObject({ value: 'run-1/r1.m1.t0' });
    expect(values).toEqual([{ a: 1 }]);
  });

  it('parameter decorators bring their own values, in any order, and their pipes run', async () => {
    const ActorName = createParamDecorator(
      (_data: unknown, context: ExecutionContext) => context.getArgByIndex<ToolContext>(1).actor?.id,
    );
    class Shout implements PipeTransform {
      transform(value: string): string {
        return value.toUpperCase();
      }
    }
    @Injectable()
    class Tools {
      @tool()
      run(@ActorName(Shout) name: string, input: JsonObject, context: ToolContext) {
        return [name, input, context.callId];
      }
    }
    expect(await call(Tools)).toMatchObject({ value: ['ALICE', { a: 1 }, 'call_1'] });
  });

  it('B055: what guards and interceptors do to the input changes nothing of what is executed', async () => {
    const guard: CanActivate = {
      canActivate(context) {
        context.getArgByIndex<JsonObject>(0).a = 666;
        return true;
      },
    };
    @Injectable()
    class Tools {
      @tool()
      @UseGuards(guard)
      run(input: JsonObject) {
        return input;
      }
    }
    expect(await call(Tools)).toMatchObject({ value: { a: 1 } });
  });

  it('a Reflector finds the metadata of the method and of the class', async () => {
    const reflector = new Reflector();
    const guard: CanActivate = {
      canActivate(context) {
        told.push(...reflector.getAllAndMerge<string[]>('roles', [context.getHandler(), context.getClass()]));
        return true;
      },
    };
    @Injectable()
    @SetMetadata('roles', ['class'])
    class Tools {
      @tool()
      @UseGuards(guard)
      @SetMetadata('roles', ['method'])
      run() {
        return 1;
      }
    }
    expect(await call(Tools)).toMatchObject({ value: 1 });
    expect(told).toEqual(['method', 'class']);
  });

  it('an interceptor may change the result, and an Observable gives its last value', async () => {
    const wrap: NestInterceptor = { intercept: (_context, next) => next.handle().pipe(map((value) => ({ value }))) };
    @Injectable()
    class Tools {
      @tool()
      @UseInterceptors(wrap)
      run() {
        return of(1, 2, 3);
      }
    }
    expect(await call(Tools)).toMatchObject({ value: { value: 3 } });
    @Injectable()
    class Empty {
      @tool()
      run() {
        return of();
      }
    }
    expect(await call(Empty)).toEqual({ entered: 1, value: undefined });
  });

  it('an interceptor may answer without the method; then nothing is entered', async () => {
    const cache: NestInterceptor = { intercept: () => of('cached') };
    @Injectable()
    class Tools {
      @tool()
      @UseInterceptors(cache)
      run() {
        return 'fresh';
      }
    }
    expect(await call(Tools)).toEqual({ entered: 0, value: 'cached' });
  });

  it('the method keeps its `this`, also when it was replaced on the instance after boot', async () => {
    @Injectable()
    class Tools {
      readonly own = 7;
      @tool()
      run() {
        return this.own;
      }
    }
    const app = await bootHost({ providers: [Tools, agentWith(['t'])] });
    apps.push(app);
    expect(await callTool(toolOf(app, 't'))).toMatchObject({ value: 7 });
    jest.spyOn(app.get(Tools), 'run').mockReturnValue(8);
    expect(await callTool(toolOf(app, 't'))).toMatchObject({ value: 8 });
  });
});

describe('Exception filters of a tool', () => {
  @Catch(RangeError)
  class RangeFilter implements ExceptionFilter {
    catch(exception: RangeError): unknown {
      return { handled: exception.message };
    }
  }

  it('CFG-9: may turn an error of the method into a result or another error', async () => {
    @Catch(TypeError)
    class Translate implements ExceptionFilter {
      catch(): never {
        throw new BadRequestException('translated');
      }
    }
    @Injectable()
    @UseFilters(RangeFilter, Translate)
    class Tools {
      @tool()
      run({ kind }: JsonObject) {
        throw kind === 'range' ? new RangeError('far') : new TypeError('wrong');
      }
    }
    expect(await call(Tools, { input: { kind: 'range' } })).toEqual({ entered: 1, value: { handled: 'far' } });
    expect((await call(Tools, { input: { kind: 'type' } })).error).toBeInstanceOf(BadRequestException);
  });

  it('a filter that answers with nothing, at once or later, leaves the error an error', async () => {
    @Catch()
    class Audit implements ExceptionFilter {
      async catch(exception: unknown): Promise<void> {
        told.push(String(exception));
        return Promise.resolve();
      }
    }
    @Injectable()
    class Tools {
      @tool()
      @UseFilters(Audit)
      run() {
        throw new Error('boom');
      }
    }
    expect((await call(Tools)).error).toEqual(new Error('boom'));
    expect(told).toEqual(['Error: boom']);
  });

  it('CFG-9: cannot turn a refusal into a success', async () => {
    @Catch()
    class Swallow implements ExceptionFilter {
      catch(): unknown {
        return { ok: true };
      }
    }
    @Injectable()
    @UseFilters(Swallow)
    class Guarded {
      @tool()
      @UseGuards({ canActivate: () => false })
      run() {
        return 'done';
      }
    }
    expect((await call(Guarded)).error).toMatchObject({ code: 'TOOL_DENIED' });
    @Injectable()
    @UseFilters(Swallow)
    class Piped {
      @tool()
      @UsePipes({
        transform: () => {
          throw new BadRequestException('no');
        },
      })
      run() {
        return 'done';
      }
    }
    expect((await call(Piped)).error).toMatchObject({ code: 'INVALID_ARGUMENTS', message: 'no' });
  });

  it('EVT-4: an error that no filter wants is not logged by Nest with all that hangs on it', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const staticError = jest.spyOn(Logger, 'error').mockImplementation(() => undefined);
    try {
      @Injectable()
      @UseFilters(RangeFilter)
      class Tools {
        @tool()
        run() {
          throw new Error('with a secret');
        }
      }
      expect((await call(Tools)).error).toEqual(new Error('with a secret'));
      expect([...error.mock.calls, ...staticError.mock.calls]).toEqual([]);
    } finally {
      error.mockRestore();
      staticError.mockRestore();
    }
  });
});

describe('The entry into a tool method', () => {
  it('JRN-2: a failed intent leaves the pipeline as it is, whatever interceptors and filters make of it', async () => {
    const swallow: NestInterceptor = {
      intercept: (_context, next) => next.handle().pipe(catchError(() => of('fine'))),
    };
    @Catch()
    class Swallow implements ExceptionFilter {
      catch(): unknown {
        return 'fine';
      }
    }
    @Injectable()
    class Tools {
      @tool()
      @UseInterceptors(swallow)
      @UseFilters(Swallow)
      run() {
        told.push('method');
      }
    }
    const failure = new Error('the store is gone');
    const called = await call(Tools, { onEnter: () => Promise.reject(failure) });
    expect(called.error).toBe(failure);
    expect(told).toEqual([]);
  });

  it('JRN-5a: an aborted call is not entered', async () => {
    @Injectable()
    class Tools {
      @tool()
      @UseGuards({ canActivate: () => (controller.abort(new Error('cancelled')), true) })
      run() {
        told.push('method');
      }
    }
    const controller = new AbortController();
    const called = await call(Tools, { context: { signal: controller.signal } });
    expect(called).toMatchObject({ entered: 0, error: new Error('cancelled') });
    expect(told).toEqual([]);
  });

  it('JRN-5: a retrying interceptor repeats only what may be repeated, and commits one intent', async () => {
    const again: NestInterceptor = { intercept: (_context, next) => next.handle().pipe(retry(2)) };
    let runs = 0;
    class Base {
      run() {
        runs++;
        if (runs < 3) throw new Error('not yet');
        return runs;
      }
    }
    @Injectable()
    class Safe extends Base {
      @tool({ recovery: 'safe' })
      @UseInterceptors(again)
      override run() {
        return super.run();
      }
    }
    @Injectable()
    class Manual extends Base {
      @tool({ recovery: 'manual' })
      @UseInterceptors(again)
      override run() {
        return super.run();
      }
    }
    expect(await call(Safe)).toEqual({ entered: 1, value: 3 });
    runs = 0;
    const manual = await call(Manual);
    expect(runs).toBe(1);
    expect(manual).toMatchObject({ entered: 1, error: { message: expect.stringContaining('twice within one call') } });
  });

  it('JRN-1: an interceptor that answers first and calls the method afterwards does not get to it', async () => {
    const refused = signal<Error>();
    const refreshLater: NestInterceptor = {
      intercept: (_context, next) => {
        setImmediate(() => next.handle().subscribe({ error: refused.resolve }));
        return of('stale');
      },
    };
    @Injectable()
    class Tools {
      @tool({ recovery: 'safe' })
      @UseInterceptors(refreshLater)
      run() {
        told.push('method');
      }
    }
    expect(await call(Tools)).toEqual({ entered: 0, value: 'stale' });
    expect((await refused.promise).message).toContain('after its call had ended');
    expect(told).toEqual([]);
  });

  it('the context is frozen, for guards and for the method', async () => {
    const frozen: boolean[] = [];
    const guard: CanActivate = {
      canActivate(context) {
        frozen.push(Object.isFrozen(context.getArgByIndex(1)));
        return true;
      },
    };
    @Injectable()
    class Tools {
      @tool()
      @UseGuards(guard)
      run(_input: JsonObject, context: ToolContext) {
        frozen.push(Object.isFrozen(context));
      }
    }
    await call(Tools, { onEnter: async () => ({ manager: {} }) });
    expect(frozen).toEqual([true, true]);
  });

  it('what entering the method replaced is what the method sees: its time begins then', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Tools {
      @tool()
      run(_input: JsonObject, { deadline, runId }: ToolContext) {
        seen.push(deadline, runId);
      }
    }
    const deadline = new Date(5);
    const called = await call(Tools, { onEnter: async () => ({ deadline }) });
    expect(called).toEqual({ entered: 1, value: undefined });
    expect(seen).toEqual([deadline, expect.any(String)]);
  });
});

describe('Global enhancers (decision global-enhancers-stay-out)', () => {
  const denyAll: CanActivate = {
    canActivate() {
      told.push('APP_GUARD');
      return false;
    },
  };
  @Catch()
  class GlobalFilter implements ExceptionFilter {
    catch(exception: unknown): never {
      told.push('APP_FILTER');
      throw exception;
    }
  }
  const globals: Provider[] = [
    { provide: APP_INTERCEPTOR, useValue: new NameInterceptor('APP_INTERCEPTOR') },
    {
      provide: APP_PIPE,
      useValue: {
        transform: () => {
          throw new BadRequestException('APP_PIPE');
        },
      },
    },
    {
      provide: APP_FILTER,
      useValue: new GlobalFilter(),
    },
  ];

  @Injectable()
  class Tools {
    @tool()
    @UsePipes({ transform: (value: unknown) => value })
    run({ fail }: JsonObject) {
      if (fail === true) throw new Error('boom');
      return 'done';
    }
  }

  it('are not run by default', async () => {
    const providers = [...globals, { provide: APP_GUARD, useValue: denyAll }];
    expect(await call(Tools, { providers })).toEqual({ entered: 1, value: 'done' });
    expect((await call(Tools, { providers, input: { fail: true } })).error).toEqual(new Error('boom'));
    expect(told).toEqual([]);
  });

  it('run with globalEnhancers: true, except pipes, which would change what was approved', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    expect(await call(Tools, { providers: globals, globalEnhancers: true })).toEqual({ entered: 1, value: 'done' });
    expect(told).toEqual(['APP_INTERCEPTOR before', 'APP_INTERCEPTOR after']);
    told = [];
    const denied = await call(Tools, {
      providers: [...globals, { provide: APP_GUARD, useValue: denyAll }],
      globalEnhancers: true,
    });
    expect(denied).toMatchObject({ entered: 0, error: { code: 'TOOL_DENIED' } });
    expect(told).toEqual(['APP_GUARD', 'APP_FILTER']);
    error.mockRestore();
  });
});

describe('However a tool class is provided, its guards run', () => {
  @Injectable()
  @UseGuards(ActorGuard)
  @UseInterceptors(CountingInterceptor())
  class ClassGuarded {
    @tool()
    run() {
      return 'done';
    }
  }

  @Injectable()
  class MethodGuarded {
    @tool()
    @UseGuards(ActorGuard)
    @UseInterceptors(CountingInterceptor())
    run() {
      return 'done';
    }
  }

  @Injectable()
  class Sub extends ClassGuarded {}

  function CountingInterceptor(): Type<NestInterceptor> {
    @Injectable()
    class Counting implements NestInterceptor {
      constructor(@Inject(Permissions) _permissions: Permissions) {}
      intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
        told.push('interceptor');
        return next.handle();
      }
    }
    return Counting;
  }

  const ways: [string, (tools: Type) => Provider][] = [
    ['as a class', (tools) => tools],
    ['by useClass under another token', (tools) => ({ provide: 'TOOLS', useClass: tools })],
    ['by a factory under its own token', (tools) => ({ provide: tools, useFactory: () => new tools() })],
    ['by a factory under another token', (tools) => ({ provide: 'TOOLS', useFactory: () => new tools() })],
    ['as a value', (tools) => ({ provide: 'TOOLS', useValue: new tools() })],
    [
      'by an asynchronous factory',
      (tools) => ({ provide: 'TOOLS', useFactory: async () => Promise.resolve(new tools()) }),
    ],
  ];

  describe.each(ways)('%s', (_way, provide) => {
    it.each([
      ['on the class', ClassGuarded],
      ['on the method', MethodGuarded],
      ['on a superclass', Sub],
    ])('CFG-9: with the guard and the interceptor %s, each once', async (_place, tools) => {
      const how = { providers: [Permissions], provide: provide(tools) };
      expect(await call(tools, how)).toEqual({ entered: 1, value: 'done' });
      expect(told).toEqual([expect.stringMatching(/^guard agent/), 'interceptor']);
      const denied = await call(tools, { ...how, context: { actor: { id: 'mallory' } } });
      expect(denied).toMatchObject({ entered: 0, error: { code: 'TOOL_DENIED' } });
    });
  });

  it('CFG-1: a request-scoped guard is a boot error that says why', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class RequestGuard implements CanActivate {
      canActivate(): boolean {
        return true;
      }
    }
    @Injectable()
    class Tools {
      @tool()
      @UseGuards(RequestGuard)
      run() {
        return 'done';
      }
    }
    await expect(call(Tools)).rejects.toThrow(/^Tools is request-scoped, because its guard RequestGuard is\./);
    await expect(call(Tools, { provide: { provide: 'T', useValue: new Tools() } })).rejects.toThrow(/RequestGuard/);
  });

  it('CFG-1: a guard that cannot be made is a boot error that names it', async () => {
    await expect(call(ClassGuarded, { provide: { provide: 'T', useValue: new ClassGuarded() } })).rejects.toThrow(
      /ActorGuard of ClassGuarded\.run could not be created/,
    );
  });
});
