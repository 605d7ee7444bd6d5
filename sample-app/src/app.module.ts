import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AgentRunsModule } from 'nestjs-agent-runs';
import { AgentRunsHttpModule } from 'nestjs-agent-runs/http';
import { AgentRunsTypeOrmModule } from 'nestjs-agent-runs/typeorm';
import { DemoAuthGuard, type DemoRequest } from './auth/demo-auth.guard.js';
import { databaseOptions } from './database/database.options.js';
import { HealthModule } from './health/health.module.js';
import { chatModel } from './model/chat.model.js';
import { NotesModule } from './notes/notes.module.js';
import { settings } from './settings/current.settings.js';
import { SupportModule } from './support/support.module.js';
import { TicketsModule } from './tickets/tickets.module.js';

@Module({
  imports: [
    ScheduleModule.forRoot(),
    TypeOrmModule.forRoot(databaseOptions(settings.database)),
    // Agent runs live in the same database.
    AgentRunsTypeOrmModule.forRoot({ dataSource: 'default', migrate: true }),
    AgentRunsModule.forRoot({
      models: { default: chatModel(settings) },
      worker: settings.worker,
      lease: settings.lease,
      pollInterval: settings.pollEvery,
      maxConcurrentRuns: settings.concurrency,
      reconcileEvery: settings.reconcileEvery,
      backoffEvery: settings.backoffEvery,
      unknownVersionAfter: settings.unknownVersionAfter,
      approvalExpires: settings.approvalExpires,
    }),
    AgentRunsHttpModule.register({
      path: 'agents',
      guards: [DemoAuthGuard],
      actorResolver: (request: DemoRequest) => request.user ?? null,
    }),
    SupportModule,
    NotesModule,
    TicketsModule,
    HealthModule,
  ],
})
export class AppModule {}
