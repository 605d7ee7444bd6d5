import { coreCases, sharedCases } from '../../packages/contract/lib/index.js';
import { serverFactory } from '../stores/typeorm/server-factory.js';
import { isServerThere } from '../stores/typeorm/server-subject.js';
import { runContract } from './run-contract.js';

const cases = [...coreCases, ...sharedCases];

runContract('TypeOrmRunStore on MariaDB', serverFactory('mariadb'), cases, 30_000, isServerThere('mariadb'));
