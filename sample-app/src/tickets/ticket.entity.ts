import { Column, Entity, PrimaryColumn } from 'typeorm';

@Entity('tickets')
export class Ticket {
  @PrimaryColumn({ type: 'varchar', length: 36 })
  id!: string;

  @Column({ type: 'text' })
  text!: string;

  @Column({ name: 'opened_by', type: 'varchar', length: 64 })
  openedBy!: string;

  /** The run that works on it. */
  @Column({ name: 'run_id', type: 'varchar', length: 128 })
  runId!: string;

  /** Epoch ms. */
  @Column({ name: 'created_at', type: 'bigint', transformer: { to: (ms: number) => ms, from: Number } })
  createdAt!: number;
}
