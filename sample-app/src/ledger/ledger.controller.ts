import { Controller, Get, UseGuards } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { DemoAuthGuard } from '../auth/demo-auth.guard.js';
import { LedgerEntry } from './ledger-entry.entity.js';

/** What really happened: the proof that nothing happened twice. Shows the built-in ledger. */
@Controller('ledger')
@UseGuards(DemoAuthGuard)
export class LedgerController {
  constructor(@InjectRepository(LedgerEntry) private readonly entries: Repository<LedgerEntry>) {}

  @Get()
  async list() {
    const entries = await this.entries.find({ order: { createdAt: 'ASC', id: 'ASC' }, take: 500 });
    return entries.map(({ kind, operationId, details }) => ({
      kind,
      operationId,
      details: JSON.parse(details) as object,
    }));
  }
}
