// Runs simulated histories.
//   npm run simulate -- --seeds N [--from N] [--only I3] [--seconds S] [--twice]
//   npm run simulate -- --show SEED                  the timeline of one history
//   npm run simulate -- --defect 'a lease never ends'   with a planted defect of test/simulation/defects.json
import { readFileSync } from 'node:fs';
import { register } from 'node:module';

const place = process.argv.indexOf('--defect');
const defects = JSON.parse(readFileSync(new URL('../test/simulation/defects.json', import.meta.url), 'utf8'));
const defect = place < 0 ? null : defects.find(({ name }) => name === process.argv[place + 1]);
if (defect === undefined) throw new Error(`There is no defect ${process.argv[place + 1]}.`);
register('./simulate-hooks.mjs', import.meta.url, { data: { defect } });
const { main } = await import('../test/simulation/main.ts');
process.exitCode = await main(process.argv.slice(2));
