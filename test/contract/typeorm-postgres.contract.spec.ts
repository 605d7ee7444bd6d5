import { coreCases, sharedCases } from '../../lib/testing/store-contract/store-contract.js';
import { serverFactory } from '../stores/typeorm/server-factory.js';
import { runContract } from './run-contract.js';

runContract('TypeOrmRunStore on Postgres', serverFactory('postgres'), [...coreCases, ...sharedCases]);
