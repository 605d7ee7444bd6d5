import { type ExecutionContext, UnauthorizedException, createParamDecorator } from '@nestjs/common';
import type { DemoRequest, DemoUser } from './demo-auth.guard.js';

/** Who makes the request. */
export const CurrentUser = createParamDecorator((_data: unknown, context: ExecutionContext): DemoUser => {
  const { user } = context.switchToHttp().getRequest<DemoRequest>();
  if (!user) throw new UnauthorizedException();
  return user;
});
