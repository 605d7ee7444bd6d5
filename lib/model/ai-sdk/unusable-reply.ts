/** The SDK returned something that is no reply. The message says what is missing and repeats nothing of it. */
export class UnusableReply extends Error {
  override readonly name = 'UnusableReply';
}
