import { Body, Controller, Get, Param, Post, UseGuards } from '@nestjs/common';
import { DemoAuthGuard, type DemoUser } from '../auth/demo-auth.guard.js';
import { CurrentUser } from '../auth/demo-user.decorator.js';
import { CreateTicketDto } from './create-ticket.dto.js';
import { TicketsService } from './tickets.service.js';

/** The application's own code: it starts a run as part of its own work. */
@Controller('support/tickets')
@UseGuards(DemoAuthGuard)
export class TicketsController {
  constructor(private readonly tickets: TicketsService) {}

  @Post()
  async create(@Body() { text }: CreateTicketDto, @CurrentUser() user: DemoUser) {
    const { id, runId } = await this.tickets.open(text, user);
    return { id, runId };
  }

  @Get(':id')
  find(@Param('id') id: string) {
    return this.tickets.find(id);
  }
}
