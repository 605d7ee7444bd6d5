import { Controller, Get, Param, UseGuards } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { DemoAuthGuard } from '../auth/demo-auth.guard.js';
import { OrderNote } from './order-note.entity.js';

@Controller('orders/:id/notes')
@UseGuards(DemoAuthGuard)
export class NotesController {
  constructor(@InjectRepository(OrderNote) private readonly notes: Repository<OrderNote>) {}

  @Get()
  list(@Param('id') orderId: string): Promise<OrderNote[]> {
    return this.notes.find({ where: { orderId }, order: { operationId: 'ASC', id: 'ASC' } });
  }
}
