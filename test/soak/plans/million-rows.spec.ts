import { describePlans } from '../../stores/typeorm/plans/describe-plans.js';

describePlans({ settled: 50_000, journalRowsEach: 20, waiting: 10_000, pending: 5_000, backingOff: 5_000 });
