/** B121: a host may have its driver count the rows that a statement changed, instead of those it found. */
import { coreCases, sharedCases } from '../../../packages/contract/lib/index.js';
import { runContract } from '../../contract/run-contract.js';
import { serverFactory } from '../../stores/typeorm/server-factory.js';
import { isServerThere } from '../../stores/typeorm/server-subject.js';

const factory = serverFactory('mariadb', { flags: ['-FOUND_ROWS'] });
const cases = [...coreCases, ...sharedCases];

runContract('TypeOrmRunStore on MariaDB without FOUND_ROWS', factory, cases, 30_000, isServerThere('mariadb'));
