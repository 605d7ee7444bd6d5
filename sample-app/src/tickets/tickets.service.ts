import { randomUUID } from 'node:crypto';
import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { RunService } from 'nestjs-agent-runs';
import { DataSource } from 'typeorm';
import type { DemoUser } from '../auth/demo-auth.guard.js';
import { Ticket } from './ticket.entity.js';

@Injectable()
export class TicketsService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly runs: RunService,
  ) {}

  /** The ticket and its run are one commit: neither is ever there without the other. */
  async open(text: string, user: DemoUser): Promise<Ticket> {
    const ticket = { id: randomUUID(), text, openedBy: user.id, runId: randomUUID(), createdAt: Date.now() };
    await this.dataSource.transaction(async (manager) => {
      // Writes before anything reads: a SQLite transaction that began with a read may be refused its first write.
      await manager.insert(Ticket, ticket);
      await this.runs.start(
        { agent: 'support', prompt: text, runId: ticket.runId, actor: user },
        { transaction: manager },
      );
    });
    return ticket;
  }

  async find(id: string) {
    const ticket = await this.dataSource.manager.findOneBy(Ticket, { id });
    if (!ticket) throw new NotFoundException(`There is no ticket ${id}.`);
    const { status, output } = await this.runs.get(ticket.runId);
    return { id, text: ticket.text, runId: ticket.runId, status, ...(output === undefined ? {} : { answer: output }) };
  }
}
