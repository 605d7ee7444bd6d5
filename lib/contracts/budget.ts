/** A run's own limit. Null means no limit. */
export interface Budget {
  /** Tokens, over the whole run; compared with the sum of committed replies. */
  maxTotalTokens: number;
}
