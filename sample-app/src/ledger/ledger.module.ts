import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { settings } from '../settings/current.settings.js';
import { DatabaseLedger } from './database.ledger.js';
import { HttpLedger } from './http.ledger.js';
import { LedgerEntry } from './ledger-entry.entity.js';
import { LedgerController } from './ledger.controller.js';
import { Ledger } from './ledger.js';

const { ledgerUrl } = settings;

@Module({
  imports: [TypeOrmModule.forFeature([LedgerEntry])],
  controllers: [LedgerController],
  providers: [
    ledgerUrl === null
      ? { provide: Ledger, useClass: DatabaseLedger }
      : { provide: Ledger, useFactory: () => new HttpLedger(ledgerUrl) },
  ],
  exports: [Ledger],
})
export class LedgerModule {}
