/** One test per kill point, on every database. */
import { describeIf } from '../support/describe-if.js';
import { ServerSubject } from '../stores/typeorm/server-subject.js';
import { CrashCampaign, type Workload } from './crash-campaign.js';
import { crashDatabases } from './databases.js';

/** Two lives and a lease, several times over, on a machine that does other things too. */
const TIMEOUT_MS = 90_000;

/** @param doubleKills how many pairs of crashes in a row are tried */
export async function describeCrashes(workload: Workload, doubleKills: number): Promise<void> {
  for (const database of crashDatabases) {
    const campaign = database.isThere ? await CrashCampaign.prepare(database, workload) : null;

    describeIf(campaign !== null)(`${workload.name} on ${database.name}: killed by SIGKILL`, () => {
      const kills = [...(campaign?.everyKill() ?? []), ...(campaign?.someDoubleKills(doubleKills) ?? [])];
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
