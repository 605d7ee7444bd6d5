/** Zones of processes, servers and sessions, and the hours that a change of the clock skips and repeats: B114, decision the-database-tells-the-time. */
import type { Interaction } from '../../../lib/contracts/interaction.js';
import type { Run } from '../../../lib/contracts/run-view.js';
import { dialectOf } from '../../../lib/stores/typeorm/database-of.js';
import { until } from '../../support/until.js';
import type { ServerType } from '../../stores/typeorm/server-subject.js';
import { describeLanes } from './describe-lanes.js';
import type { FaultLane } from './fault-lane.js';
import { zoneStatements } from './mariadb-zones.js';
import { started } from './scripts.js';

const ZONES = ['UTC', 'America/St_Johns', 'Asia/Kathmandu', 'Europe/Berlin'] as const;
/** Of sessions. SYSTEM is that of the server's process. */
const SESSION_ZONES = ['SYSTEM', '+05:30', ...ZONES] as const;
/** Epoch seconds around the nights in which Berlin's clocks were put back and forward, and in which St. John's were. */
const MOMENTS = [
  ...['2026-10-25T00:30:00.123Z', '2026-10-25T01:00:00Z', '2026-10-25T01:30:00.123Z'],
  ...['2026-03-29T00:59:59.999Z', '2026-03-29T01:00:00Z', '2026-03-29T01:30:00Z'],
  ...['2026-11-01T04:01:00Z', '2026-11-01T04:31:00Z', '2026-03-08T05:31:00Z'],
].map((text) => Date.parse(text) / 1_000);

interface Reading {
  zone: string;
  is: number;
  says: number;
  /** What the obvious expression says. */
  naive: number;
}

/** The clock expression in a session of each zone, at moments that are made up. */
async function readings(lane: FaultLane): Promise<Reading[]> {
  const { now } = dialectOf(lane.type);
  const all: Reading[] = [];
  for (const zone of SESSION_ZONES) {
    for (const is of MOMENTS) {
      const row = await (lane.type === 'mariadb'
        ? atOnMariaDb(lane, zone, is, now)
        : atOnPostgres(lane, zone, is, now));
      all.push({
        zone,
        is: Math.round(is * 1_000),
        says: Number(row['says']),
        naive: Math.round(Number(row['naive']) * 1_000),
      });
    }
  }
  return all;
}

async function atOnMariaDb(lane: FaultLane, zone: string, is: number, now: string): Promise<Record<string, unknown>> {
  await lane.query(`SET time_zone = ?`, [zone]);
  await lane.query(`SET timestamp = ?`, [is]);
  const [row] = await lane.query(`SELECT ${now} AS says, UNIX_TIMESTAMP(CAST(NOW(3) AS CHAR)) AS naive`);
  await lane.query('SET timestamp = DEFAULT');
  return row as Record<string, unknown>;
}

async function atOnPostgres(lane: FaultLane, zone: string, is: number, now: string): Promise<Record<string, unknown>> {
  // There `SYSTEM` is the server's default, and signs are those of POSIX.
  const name = zone === '+05:30' ? '-05:30' : zone;
  await lane.query(zone === 'SYSTEM' ? 'RESET TIME ZONE' : `SET TIME ZONE '${name}'`);
  const moment = `to_timestamp(${is})`;
  const [row] = await lane.query(
    `SELECT ${now.replace('clock_timestamp()', moment)} AS says, EXTRACT(EPOCH FROM CAST(CAST(${moment} AS timestamp) AS text)::timestamptz) AS naive`,
  );
  return row as Record<string, unknown>;
}

/** The clock expression as it runs, beside the clock of this process, which is on the same machine. */
async function drift(lane: FaultLane): Promise<number> {
  const before = Date.now();
  const [row] = await lane.query(`SELECT ${dialectOf(lane.type).now} AS says`);
  const says = Number(row?.['says']);
  return says < before - 1 ? says - before : Math.max(0, says - Date.now());
}

interface Phase {
  zone: string;
  drift: number;
  before: number;
  after: number;
  /** What each process sees of each run, by run. */
  seen: { run: Run; asks: Interaction[] }[][];
  attempts: number[];
}

const defaultZone = (type: ServerType, zone: string): string[] =>
  type === 'mariadb' ? [`--default-time-zone=${zone}`] : ['-c', `timezone=${zone}`];

describeLanes('processes, servers and sessions in different zones', {
  settings: () => ({ environment: { TZ: 'Europe/Berlin' } }),

  async play(lane) {
    if (lane.type === 'mariadb')
      for (const [index, zone] of ZONES.entries())
        for (const statement of zoneStatements(zone, index + 1)) await lane.query(statement);
    const hosts = [];
    for (const [index, zone] of ZONES.entries()) {
      hosts.push(
        await lane.boot(zone.replace('/', '-'), {
          direct: true,
          env: { TZ: zone },
          store: { statementTimeout: '3s' },
          runs: { lease: '18s' },
          // What the host tells its driver about zones is about its own columns.
          dataSource: lane.type === 'mariadb' && index > 0 ? { timezone: '+09:00', dateStrings: index > 1 } : {},
        }),
      );
    }
    const made = await readings(lane);

    const phases: Phase[] = [];
    for (const zone of ['', '+05:30', 'America/St_Johns']) {
      if (zone !== '')
        await lane.restart(
          defaultZone(lane.type, lane.type === 'postgres' && zone === '+05:30' ? 'Asia/Kolkata' : zone),
        );
      const runIds = hosts.map(({ name }) => `${name}-${phases.length}`);
      const gate = lane.farSide.hold({ tool: 'pay' });
      const before = Date.now();
      await Promise.all(
        hosts.map((host, index) => lane.start(host, started(runIds[index] as string, [['pay', 'sign'], 'done']))),
      );
      await until(() => runIds.every((runId) => gate.asks.some((ask) => ask.runId === runId)), 'payments in flight', {
        withinMs: 20_000,
        everyMs: 10,
      });
      const after = Date.now();
      // Each looks for expired leases.
      for (const host of hosts) await host.call('recovery', 'reconcile');
      const seen = [];
      for (const runId of runIds) {
        const views = [];
        for (const host of hosts) {
          const run = await host.call('runs', 'get', runId);
          const { items: asks } = await host.call('store', 'interactions', { runId, limit: 10 });
          views.push({ run, asks });
        }
        seen.push(views);
      }
      gate.open();
      const asked = await lane.rest(hosts[0] as (typeof hosts)[0], runIds);
      for (const { id, interactions } of asked)
        await hosts[0]?.call('runs', 'respond', id, interactions[0]?.id ?? '', {
          decision: 'approve',
          by: 'ann',
        });
      const ended = await lane.rest(hosts[1] as (typeof hosts)[0], runIds);
      phases.push({
        zone,
        drift: await drift(lane),
        before,
        after,
        seen,
        attempts: ended.map(({ attempt }) => attempt),
      });
    }
    return { made, phases };
  },

  tests(facts) {
    it.each(SESSION_ZONES)(
      'decision the-database-tells-the-time: the clock says the true time at every moment in a session of zone %s',
      (zone) => {
        const its = facts().made.filter((reading) => reading.zone === zone);
        expect(its).toHaveLength(MOMENTS.length);
        expect(its.map(({ says }) => says)).toEqual(its.map(({ is }) => is));
      },
    );

    it('decision the-database-tells-the-time: where the obvious expression is an hour wrong', () => {
      const wrong = facts().made.filter(({ is, naive }) => Math.abs(naive - is) > 1_000);
      expect(wrong.map(({ zone }) => zone)).toEqual(expect.arrayContaining(['Europe/Berlin', 'America/St_Johns']));
    });

    it('B114: the clock is that of the machine, whatever the default zone of the server', () => {
      expect(facts().phases.map(({ drift: off }) => Math.abs(off))).toEqual([0, 0, 0]);
    });

    it('B114: all processes see the same times, and true ones', () => {
      for (const { before, after, seen } of facts().phases) {
        for (const views of seen) {
          const [first] = views;
          for (const view of views) {
            expect(view.run.createdAt).toEqual(first?.run.createdAt);
            expect(view.asks).toEqual(first?.asks);
          }
          const createdAt = Number(first?.run.createdAt);
          expect(createdAt).toBeGreaterThanOrEqual(before - 1);
          expect(createdAt).toBeLessThanOrEqual(after);
          expect(first?.asks).toMatchObject([{ expiresAt: (first?.asks[0]?.createdAt as number) + 3_600_000 }]);
        }
      }
    });

    it("B114: nobody takes another's fresh lease for an expired one", () => {
      for (const { seen, attempts } of facts().phases) {
        for (const views of seen)
          for (const { run } of views) expect(run).toMatchObject({ status: 'running', attempt: 1 });
        // The claim, and the one after the approval.
        expect(attempts).toEqual([2, 2, 2, 2]);
      }
    });
  },
});
