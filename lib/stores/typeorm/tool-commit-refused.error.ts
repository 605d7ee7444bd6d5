/**
 * The database refused to commit what a transactional tool wrote, e.g. for a deferred constraint of the host's tables. Nothing is committed, and running the
 * tool again would end the same way: it is an error of the tool.
 */
export class ToolCommitRefusedError extends Error {
  override readonly name = 'ToolCommitRefusedError';

  constructor(readonly databaseCode: string) {
    super(`The database refused to commit what the tool wrote: ${databaseCode}.`);
  }
}
