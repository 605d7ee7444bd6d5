import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

@Entity('order_notes')
export class OrderNote {
  @PrimaryColumn({ type: 'varchar', length: 36 })
  id!: string;

  @Index('order_notes_order')
  @Column({ name: 'order_id', type: 'varchar', length: 64 })
  orderId!: string;

  @Column({ type: 'text' })
  text!: string;

  /** Which tool call wrote it. */
  @Column({ name: 'operation_id', type: 'varchar', length: 191 })
  operationId!: string;
}
