import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { NoteTools } from './note.tools.js';
import { NotesController } from './notes.controller.js';
import { OrderNote } from './order-note.entity.js';

@Module({
  imports: [TypeOrmModule.forFeature([OrderNote])],
  controllers: [NotesController],
  providers: [NoteTools],
})
export class NotesModule {}
