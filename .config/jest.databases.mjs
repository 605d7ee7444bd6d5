// Jest's global set-up for the suites that need MariaDB and Postgres. For each: the server that TEST_MARIADB_URL or TEST_POSTGRES_URL names, else one on
// the usual port, else a private instance from installed binaries, on a port and in a directory of its own. Where none can be had, CI fails with what to do,
// and elsewhere the suites of that server are reported as skipped.
import { answers, PrivateServer, SERVER_KINDS } from './private-server.mjs';

const VARIABLES = { mariadb: 'TEST_MARIADB_URL', postgres: 'TEST_POSTGRES_URL' };
const started = [];

/** @param usualPorts for a trial of the private instances */
export default async function setUp(_config, _project, usualPorts = { mariadb: 3306, postgres: 5432 }) {
  const missing = [];
  for (const name of Object.keys(SERVER_KINDS)) {
    const url = await urlOf(name, usualPorts[name]);
    if (url) process.env[VARIABLES[name]] = url;
    else missing.push(name);
  }
  reportMissing(missing, (name) => `start one on its usual port, or name one in ${VARIABLES[name]}, or install it`);
}

/** Under CI an error that says what to do; elsewhere the suites of these servers are skipped. */
export function reportMissing(missing, whatToDo) {
  process.env.TEST_SERVERS_MISSING = missing.join(',');
  if (missing.length === 0) return;
  const fix = missing.map((name) => {
    const { title, packages } = SERVER_KINDS[name];
    return `${title}: ${whatToDo(name)} (${packages}).`;
  });
  if (process.env.CI) throw new Error(`The tests need database servers that are not here.\n${fix.join('\n')}`);
  process.stderr.write(`Skipped suites for lack of a server. ${fix.join(' ')}\n`);
}

export async function stopPrivateServers() {
  for (const server of started.splice(0)) await server.dispose();
}

async function urlOf(name, usualPort) {
  const named = process.env[VARIABLES[name]];
  if (named) return named;
  if (await answers(usualPort)) return SERVER_KINDS[name].url(usualPort);
  if (!PrivateServer.isInstalled(name)) return null;
  try {
    const server = await PrivateServer.create(name);
    started.push(server);
    await server.start();
    return server.url;
  } catch (error) {
    process.stderr.write(`No private ${SERVER_KINDS[name].title}: ${error.message}\n`);
    return null;
  }
}
