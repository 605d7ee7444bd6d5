import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { IsString, Length } from 'class-validator';
import { AgentTool } from 'nestjs-agent-runs';
import type { ToolContext } from 'nestjs-agent-runs/typeorm';
import { OrderNote } from './order-note.entity.js';

export class AddNoteDto {
  @IsString()
  @Length(1, 64)
  orderId!: string;

  @IsString()
  @Length(1, 4_000)
  text!: string;
}

@Injectable()
export class NoteTools {
  /** The note and the record of this call are one commit: after a crash both are there, or neither. */
  @AgentTool({
    name: 'add_note',
    description: 'Adds an internal note to an order, for colleagues.',
    input: AddNoteDto,
    recovery: 'transactional',
  })
  async addNote({ orderId, text }: AddNoteDto, context: ToolContext) {
    const note = { id: randomUUID(), orderId, text, operationId: context.operationId };
    await context.manager.insert(OrderNote, note);
    return { noteId: note.id };
  }
}
