// Jest's global set-up for the crash suite: the built package, and the database servers.
import setUpBuild from './jest.built.mjs';
import setUpDatabases from './jest.databases.mjs';

export default async function setUp(config, project) {
  await setUpBuild();
  await setUpDatabases(config, project);
}
