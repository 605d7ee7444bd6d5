import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';

export interface DemoUser {
  id: string;
}

export interface DemoRequest {
  headers: Record<string, string | string[] | undefined>;
  user?: DemoUser;
}

/**
 * FOR THE DEMO ONLY: believes whoever says in a header who they are. Put your own guard here (JWT, session …); all that the rest of the sample
 * needs is `request.user`.
 */
@Injectable()
export class DemoAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<DemoRequest>();
    const name = request.headers['x-user'];
    if (typeof name !== 'string' || !/^[\w.@-]{1,64}$/.test(name)) {
      throw new UnauthorizedException('Say who you are in the header x-user, e.g. x-user: alice.');
    }
    request.user = { id: name };
    return true;
  }
}
