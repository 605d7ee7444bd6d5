import { describePlans } from '../plans/describe-plans.js';

// A million rows of journal are in test/soak/plans.
describePlans({ settled: 3_000, journalRowsEach: 4, waiting: 1_000, pending: 500, backingOff: 500 });
