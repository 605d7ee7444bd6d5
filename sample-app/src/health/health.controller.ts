import { Controller, Get, ServiceUnavailableException } from '@nestjs/common';
import { RunWorker } from 'nestjs-agent-runs';

/** For load balancers: answered from memory, so that a slow database does not make it slow. */
@Controller('health')
export class HealthController {
  constructor(private readonly worker: RunWorker) {}

  @Get()
  check(): { status: 'ok' } {
    const { state } = this.worker.status();
    // A process without a worker starts and reads runs: it is as ready as it can be.
    if (state === 'ready' || state === 'off' || state === 'paused') return { status: 'ok' };
    throw new ServiceUnavailableException({ status: state });
  }
}
