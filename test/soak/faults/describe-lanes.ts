/** What happens on both databases, at the same time; a test then looks at what came of it. */
import type { ServerSettings } from '../../../.config/private-server.mjs';
import { describeIf } from '../../support/describe-if.js';
import { isServerThere, SERVER_TYPES, type ServerType } from '../../stores/typeorm/server-subject.js';
import { FaultLane } from './fault-lane.js';

const TIMEOUT_MS = 180_000;

interface Play<Facts> {
  types?: readonly ServerType[];
  settings?: (type: ServerType) => ServerSettings;
  /** Goes from the first process to the last, and says what it saw. */
  play: (lane: FaultLane) => Promise<Facts>;
  /** The tests. */
  tests: (facts: () => Facts, type: ServerType) => void;
}

/** All plays of a file begin together, before its first test. */
export function describeLanes<Facts>(
  title: string,
  { types = SERVER_TYPES, settings, play, tests }: Play<Facts>,
): void {
  const plays = new Map<ServerType, Promise<Facts>>();

  beforeAll(() => {
    for (const type of types.filter(isServerThere)) {
      const playing = playOn(type, settings?.(type) ?? {}, play);
      // Its failure is told by the suite that waits for it.
      playing.catch(() => undefined);
      plays.set(type, playing);
    }
  });

  for (const type of types) {
    describeIf(isServerThere(type))(`${title}, on ${type}`, () => {
      let facts: Facts;
      beforeAll(async () => {
        facts = await (plays.get(type) as Promise<Facts>);
      }, TIMEOUT_MS);
      tests(() => facts, type);
    });
  }

  // Also where a test was left out: nothing may outlive the file.
  afterAll(() => Promise.allSettled(plays.values()), TIMEOUT_MS);
}

async function playOn<Facts>(
  type: ServerType,
  settings: ServerSettings,
  play: (lane: FaultLane) => Promise<Facts>,
): Promise<Facts> {
  const lane = await FaultLane.open(type, settings);
  try {
    return await play(lane);
  } finally {
    await lane.close();
  }
}
