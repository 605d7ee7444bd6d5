// Jest's global set-up for the long suites: the built package, the database servers, and the binaries of both, because some suites kill and configure servers of
// their own.
import setUpBuild from './jest.built.mjs';
import setUpDatabases, { reportMissing } from './jest.databases.mjs';
import { PrivateServer, SERVER_KINDS } from './private-server.mjs';

export default async function setUp(config, project) {
  await setUpBuild();
  await setUpDatabases(config, project);
  const missing = Object.keys(SERVER_KINDS).filter((name) => !PrivateServer.isInstalled(name));
  if (missing.length > 0) reportMissing(missing, () => 'install it');
}
