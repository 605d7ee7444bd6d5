import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** Something that happened, in the built-in ledger. */
@Entity('ledger_entries')
export class LedgerEntry {
  @PrimaryColumn({ type: 'varchar', length: 36 })
  id!: string;

  @Column({ type: 'varchar', length: 32 })
  kind!: string;

  @Index('ledger_entries_operation')
  @Column({ name: 'operation_id', type: 'varchar', length: 191 })
  operationId!: string;

  /** The idempotency key for the kinds that honour one, else the entry's own id. */
  @Index('ledger_entries_unique', { unique: true })
  @Column({ name: 'unique_key', type: 'varchar', length: 224 })
  uniqueKey!: string;

  /** JSON. */
  @Column({ type: 'text' })
  details!: string;

  /** Epoch ms. */
  @Column({ name: 'created_at', type: 'bigint', transformer: { to: (ms: number) => ms, from: Number } })
  createdAt!: number;
}
