// Jest's global set-up for the long suites: the built package, and binaries of both database servers, because the suites kill and configure servers of their own.
import setUpBuild from './jest.built.mjs';
import { reportMissing } from './jest.databases.mjs';
import { PrivateServer, SERVER_KINDS } from './private-server.mjs';

export default async function setUp() {
  await setUpBuild();
  const missing = Object.keys(SERVER_KINDS).filter((name) => !PrivateServer.isInstalled(name));
  reportMissing(missing, () => 'install it');
}
