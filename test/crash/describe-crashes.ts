/**
 * One test per kill point, on every database. `TEST_CRASH_SAMPLE=3` tries every third of them on the servers; the commit chooses where the counting begins,
 * so that following commits try the others.
 */
import { execFileSync } from 'node:child_process';
import { describeIf } from '../support/describe-if.js';
import { ServerSubject } from '../stores/typeorm/server-subject.js';
import { CrashCampaign, type Workload } from './crash-campaign.js';
import { crashDatabases } from './databases.js';

/** Two lives and a lease, several times over, on a machine that does other things too. */
const TIMEOUT_MS = 90_000;

const SAMPLE = Number(process.env['TEST_CRASH_SAMPLE'] ?? 1);

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return '0';
  }
}

/** The kill points of this run on a server. */
function sampled<T>(kills: readonly T[], workload: string, database: string): T[] {
  const offset = Number.parseInt(commit(), 16) % SAMPLE;
  const chosen = kills.filter((_, index) => index % SAMPLE === offset);
  if (SAMPLE > 1)
    process.stdout.write(
      `${workload} on ${database}: ${chosen.length} of ${kills.length} kill points, one in ${SAMPLE} from ${offset} (commit ${commit()})\n`,
    );
  return chosen;
}

/** @param doubleKills how many pairs of crashes in a row are tried */
export async function describeCrashes(workload: Workload, doubleKills: number): Promise<void> {
  for (const database of crashDatabases) {
    const campaign = database.isThere ? await CrashCampaign.prepare(database, workload) : null;

    describeIf(campaign !== null)(`${workload.name} on ${database.name}: killed by SIGKILL`, () => {
      const all = [...(campaign?.everyKill() ?? []), ...(campaign?.someDoubleKills(doubleKills) ?? [])];
      const kills = database.isServer ? sampled(all, workload.name, database.name) : all;
      beforeAll(() => campaign?.begin(kills));
      afterAll(async () => {
        await campaign?.problemsAtTheEnd();
        await ServerSubject.dropDatabases();
      }, TIMEOUT_MS);

      for (const kill of kills) {
        it(
          `JRN-4, JRN-5: ${campaign?.titleOf(kill)}`,
          async () => expect(await campaign?.problemsAfter(kill)).toEqual([]),
          TIMEOUT_MS,
        );
      }

      it(
        'OWN-3: a worker that survived all of it and was stopped holds no lease any more',
        async () => expect(await campaign?.problemsAtTheEnd()).toEqual([]),
        TIMEOUT_MS,
      );
    });
  }
}
