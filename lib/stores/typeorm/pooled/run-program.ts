/** Runs a program on one connection, one statement after the other. */
import type { Answer, Program } from '../program.js';
import type { DriverConnection } from './pooled-driver.js';

export async function runProgram<T>(connection: Pick<DriverConnection, 'execute'>, program: Program<T>): Promise<T> {
  let step = program.next();
  while (!step.done) {
    let answer: Answer;
    try {
      answer = await connection.execute(step.value);
    } catch (error) {
      step = program.throw(error);
      continue;
    }
    step = program.next(answer);
  }
  return step.value;
}
