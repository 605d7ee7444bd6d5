import { Injectable } from '@nestjs/common';
import { IsEmail, IsString, Length } from 'class-validator';
import { AgentTool, type ToolContext } from 'nestjs-agent-runs';
import { Ledger } from '../../ledger/ledger.js';

export class MailDto {
  @IsEmail()
  to!: string;

  @IsString()
  @Length(1, 200)
  subject!: string;

  @IsString()
  @Length(1, 20_000)
  body!: string;
}

@Injectable()
export class MailTools {
  constructor(private readonly ledger: Ledger) {}

  /** Nobody can tell whether an interrupted email left: a person decides, and it is never sent twice. */
  @AgentTool({
    name: 'send_email',
    description: 'Sends an email to a customer.',
    input: MailDto,
    recovery: 'manual',
  })
  send(mail: MailDto, { operationId, signal }: ToolContext) {
    return this.ledger.record('emails', operationId, mail, signal);
  }
}
