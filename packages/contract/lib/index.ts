import { interactionCases } from './interactions.cases.js';
import { journalCases } from './journal.cases.js';
import { listingCases } from './listing.cases.js';
import { metricsCases } from './metrics.cases.js';
import { ownershipCases } from './ownership.cases.js';
import { sessionCases } from './sessions.cases.js';
import { severalProcessesCases } from './several-processes.cases.js';
import { snapshotCases } from './snapshot.cases.js';
import type { StoreCase } from './store-case.js';
import { submissionCases } from './submission.cases.js';
import { transitionCases } from './transitions.cases.js';
import { valueCases } from './values.cases.js';

export type { StoreCase, StoreFactory, StoreUnderTest } from './store-case.js';

/** For every store. */
export const coreCases: readonly StoreCase[] = [
  ...submissionCases,
  ...journalCases,
  ...transitionCases,
  ...sessionCases,
  ...ownershipCases,
  ...listingCases,
  ...interactionCases,
  ...snapshotCases,
  ...valueCases,
  ...metricsCases,
];

/** For stores that several processes open; their factories give `second`. */
export const sharedCases: readonly StoreCase[] = severalProcessesCases;
