/**
 * Somebody else committed between a program's reads and its writes. Never leaves the store: the transaction is rolled back and the program runs again; if it
 * keeps losing, the caller is told with a StoreConflictError.
 */
export class LostRaceError extends Error {
  override readonly name = 'LostRaceError';
}
