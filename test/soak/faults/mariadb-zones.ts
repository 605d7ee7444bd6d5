/** Named zones for a MariaDB that has none, which is how it is installed: rows for the tables it keeps them in, made from what Node knows. */

const FROM = Date.UTC(2025, 0, 1) / 1_000;
const TO = Date.UTC(2028, 0, 1) / 1_000;
const DAY = 86_400;

/** Statements that make a zone known, between the years 2025 and 2027. @param id of the zone in the tables, from 1 */
export function zoneStatements(zone: string, id: number): string[] {
  const changes = changesOf(zone);
  const offsets = [...new Set([offsetAt(zone, FROM), ...changes.map(({ offset }) => offset)])];
  return [
    `INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (${id}, 'N')`,
    `INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('${zone}', ${id})`,
    ...offsets.map(
      (offset, type) =>
        `INSERT INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, \`Offset\`, Is_DST, Abbreviation) VALUES (${id}, ${type}, ${offset}, ${Number(offset === Math.max(...offsets) && offsets.length > 1)}, '')`,
    ),
    ...changes.map(
      ({ at, offset }) =>
        `INSERT INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (${id}, ${at}, ${offsets.indexOf(offset)})`,
    ),
  ];
}

function changesOf(zone: string): { at: number; offset: number }[] {
  const changes = [];
  for (let day = FROM; day < TO; day += DAY) {
    if (offsetAt(zone, day) === offsetAt(zone, day + DAY)) continue;
    let [before, after] = [day, day + DAY];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (offsetAt(zone, middle) === offsetAt(zone, day)) before = middle;
      else after = middle;
    }
    changes.push({ at: after, offset: offsetAt(zone, after) });
  }
  return changes;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Seconds east of UTC. */
function offsetAt(timeZone: string, epochSeconds: number): number {
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat('en-GB', { timeZone, timeZoneName: 'longOffset' });
    formats.set(timeZone, format);
  }
  const name = format.formatToParts(epochSeconds * 1_000).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d+):(\d+)/.exec(name) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3_600 + Number(minutes) * 60);
}
