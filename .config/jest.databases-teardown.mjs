// Jest's global teardown: private database servers end with the tests.
import { stopPrivateServers } from './jest.databases.mjs';

export default stopPrivateServers;
