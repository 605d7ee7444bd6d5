// `npm run bench`: measures the built package against what the database could do without it. See docs/performance.md.
import { writeFileSync } from 'node:fs';
import { databasesOf } from './databases.mjs';
import { figuresOf } from './goals.mjs';
import { load, machineFacts } from './machine.mjs';
import { MEASURES } from './measures.mjs';
import { readOptions } from './options.mjs';
import { machineLine, tableOf, verdictLine } from './report.mjs';

const options = readOptions(process.argv.slice(2));
if (options.help) {
  console.log(options.help);
} else {
  const machine = machineFacts();
  console.log(machineLine(machine));
  // The library's timers hold no process open, and neither does SQLite.
  const alive = setInterval(() => undefined, 60_000);
  const results = [];
  for (const target of options.targets) {
    for (const open of databasesOf(target, options.poolSize)) results.push(await measure(open));
  }
  console.log(`\n${verdictLine(results)}`);
  clearInterval(alive);
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ machine, options, results }, null, 2)}\n`);
}

async function measure(open) {
  const database = await open();
  try {
    const measured = {};
    for (const name of options.only) {
      process.stderr.write(`${database.name}: ${name} …\n`);
      measured[name] = await MEASURES[name](database, { ...options, open });
    }
    const figures = figuresOf(database.key, measured);
    console.log(tableOf(database.name, { ...database.facts, load: `load ${load()} at the end` }, figures));
    return { name: database.name, key: database.key, facts: database.facts, figures, measured };
  } finally {
    await database.close();
  }
}
