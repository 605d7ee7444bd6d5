import { IsString, Matches, MaxLength } from 'class-validator';

export class CreateTicketDto {
  @IsString()
  @MaxLength(20_000)
  @Matches(/\S/, { message: 'text must not be blank' })
  text!: string;
}
